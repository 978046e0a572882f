import json
import random

import pytest

from nearlabel.features.wordpiece import WordPieces, words

# Characters that are difficult for tokenizers.
POOLS = (
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJ", " \t\n\r\x0b\x0c\x85\u00a0\u2003\u3000\u2028",
    ".,;:!?-'\"()[]{}$%&*+/<=>@\\^_`|~#", "áéíóúñçüßøÆŒÅÉİıŁłŠšžΣσςΩ", "漢字仮名交じり文豈𠀀",
    "한국어", "абвгдЖЯёй", "שָׁלוֹם عربي مَرْحَبًا", "हिन्दी ไทย ภาษา", "😀🎉👩‍👩‍👧‍👦🏳️‍🌈👍🏽",
    "\u200b\u200d\u00ad\ufeff\u0000\ufffd\u0301\u0327\u20dd\ue000", "0123456789½²①",
    "\u201e\u201c\u201d\u2018\u2019\u2014\u2013\u2026\u00ab\u00bf\u3002\uff01\uff08",
)  # fmt: skip
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocabulary():
    """Every character of the pools as a word and inside of one, and some longer pieces."""
    letters = sorted({letter for pool in POOLS for letter in "".join(words(pool))})
    longer = ["the", "sea", "seas", "ing", "un", "aff", "able", "ab", "cd", "漢字", "한"]
    pieces = [*MARKS, *letters, *longer]
    pieces += [f"##{one}" for one in (*letters[: len(letters) // 2], *longer)]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def tokenizer_json(vocabulary, **changes):
    """A file as the package tokenizers writes it."""
    marks = [
        {"id": vocabulary[mark], "content": mark, "special": True, "single_word": False,
         "lstrip": False, "rstrip": False, "normalized": False}
        for mark in MARKS
    ]  # fmt: skip
    begin, end = ({"SpecialToken": {"id": mark, "type_id": 0}} for mark in ("[CLS]", "[SEP]"))
    post = {
        "type": "TemplateProcessing",
        "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}, end],
        "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}, end,
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            mark: {"id": mark, "ids": [vocabulary[mark]], "tokens": [mark]}
            for mark in ("[CLS]", "[SEP]")
        },
    }  # fmt: skip
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                  "strip_accents": None, "lowercase": True}  # fmt: skip
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100, "vocab": vocabulary}  # fmt: skip
    tree = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": marks,
            "normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": post, "decoder": None, "model": model}  # fmt: skip
    for path, value in changes.items():
        *first, last = path.split("__")
        part = tree
        for key in first:
            part = part[key]
        part[last] = value
    return json.dumps(tree).encode()


def drawn(rng):
    """A text of some kinds of characters, words and marks."""
    pools = [POOLS[0], POOLS[2], *rng.sample(POOLS, rng.randint(0, 4))]
    length = rng.choice([0, 1, 3, 10, 40, 120])
    text = "".join(rng.choice(rng.choice(pools)) for _ in range(length))
    extra = ["", "", "", "[MASK]x", "a[SEP]b", " unaffable seas", "x" * 100, " " + "x" * 101]
    return text + rng.choice(extra)


def test_as_the_package_tokenizers():
    tokenizers = pytest.importorskip("tokenizers")
    content = tokenizer_json(vocabulary())
    theirs, ours = tokenizers.Tokenizer.from_str(content.decode()), WordPieces.from_json(content)
    rng = random.Random(0)
    texts = [drawn(rng) for _ in range(3000)]
    for text, expected in zip(texts, theirs.encode_batch(texts), strict=True):
        assert ours.encode(text, 10**6) == expected.ids, repr(text)
    theirs.enable_truncation(7)
    for text, expected in zip(texts[:500], theirs.encode_batch(texts[:500]), strict=True):
        assert ours.encode(text, 7) == expected.ids, repr(text)
    known = {number for text in texts for number in ours.encode(text, 10**6)}
    assert len(known) > 150  # the texts do reach the vocabulary


@pytest.mark.slow
def test_every_character_as_the_package_tokenizers():
    tokenizers = pytest.importorskip("tokenizers")
    content = tokenizer_json(vocabulary())
    theirs, ours = tokenizers.Tokenizer.from_str(content.decode()), WordPieces.from_json(content)
    codes = [code for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    found = theirs.encode_batch([f"a{chr(code)}b" for code in codes])
    differ = [
        code
        for code, expected in zip(codes, found, strict=True)
        if ours.encode(f"a{chr(code)}b", 99) != expected.ids
    ]
    assert len(differ) < 1000  # those that Unicode got later than that package's tables
    assert not [code for code in differ if code < 0x600 or 0x1F300 <= code < 0x1F700]


def test_words():
    assert words("Crème brûlée, 漢字!\tİstanbul\x00\u200b") == [
        "creme", "brulee", ",", "漢", "字", "!", "istanbul"
    ]  # fmt: skip
    assert words("\ud800 half") == ["half"]  # of a character
    assert words(" \n") == []


def test_pieces_by_hand():
    numbers = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "un": 3, "##aff": 4, "##able": 5, "##a": 6}
    pieces = WordPieces(numbers, ["[SEP]"])
    assert pieces.encode("Unaffable un", 99) == [0, 3, 4, 5, 3, 1]
    assert pieces.encode("unaffables", 99) == [0, 2, 1]  # unknown as a whole
    assert pieces.encode("un[SEP]un", 99) == [0, 3, 1, 3, 1]
    assert pieces.encode("Unaffable un", 4) == [0, 3, 4, 1]
    assert pieces.encode("", 3) == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer__type": "NFC"},
        {"normalizer__lowercase": False},
        {"normalizer__strip_accents": False},
        {"pre_tokenizer__type": "Whitespace"},
        {"model__type": "BPE"},
        {"model__unk_token": "<unk>"},
        {"model__vocab": {}},
        {"model__vocab": ["a"]},
        {"model__vocab": {"[CLS]": 1.5, "[SEP]": 2, "[UNK]": 3, "[PAD]": 0, "[MASK]": 4}},
        {"model__vocab": {"a": 1}},
        {"added_tokens": [{"content": "<s>"}]},
        {"added_tokens": [{"content": ["[CLS]"]}]},
        {"model__vocab": {"[CLS]": 2**70, "[SEP]": 2, "[UNK]": 3, "[PAD]": 0, "[MASK]": 4}},
        {"added_tokens": None},
        {"model": 5},
    ],
)
def test_files_of_another_kind(change):
    with pytest.raises(ValueError, match="its|not a JSON tokenizer"):
        WordPieces.from_json(tokenizer_json(vocabulary(), **change))


def test_not_json():
    for content in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="not a JSON tokenizer"):
            WordPieces.from_json(content)
