"""Texts as token ids of word pieces, as read by BERT and its successors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Self

from nearlabel.common.messages import plain_json

_BEGIN, _END, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_INSIDE = "##"  # prefix of pieces inside a word
_LONGEST_WORD = 100  # characters; longer words are unknown
# Ideographs, each of which is a word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPieces:
    """A vocabulary of word pieces, and the rules that split texts into them.

    Control characters and accents are removed and letters lowercased. A text is split at whitespace
    and around every punctuation mark and ideograph, and each word into the longest pieces of the
    vocabulary from left to right. The package `tokenizers` does the same, but may classify
    characters added after Unicode 8 differently.

    Parameters
    ----------
    vocabulary : dict of str to int
        Ids of pieces; pieces inside a word begin with "##".
    marks : iterable of str
        Pieces that are recognized anywhere in a text, such as "[MASK]".
    """

    def __init__(self, vocabulary: dict[str, int], marks: Iterable[str] = ()) -> None:
        for needed in (_BEGIN, _END, _UNKNOWN):
            if needed not in vocabulary:
                raise ValueError(f"the vocabulary has no {needed}")
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary))
        self._marks = re.compile(f"({'|'.join(map(re.escape, marks)) or '(?!)'})")
        self.numbers_of_word = lru_cache(2**16)(self._pieces)

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read a ``tokenizer.json``; ValueError if it is not of BERT's kind."""
        try:
            tree = plain_json(content)
            model, how = tree["model"], tree["normalizer"]
            vocabulary = model["vocab"]
            settings = {
                "normalizer": (how["type"], "BertNormalizer"),
                "lowercase": (how["lowercase"], True),
                "clean_text": (how["clean_text"], True),
                "handle_chinese_chars": (how["handle_chinese_chars"], True),
                "strip_accents": (how["strip_accents"] in (None, True), True),
                "pre_tokenizer": (tree["pre_tokenizer"]["type"], "BertPreTokenizer"),
                "model": (model.get("type", "WordPiece"), "WordPiece"),
                "unk_token": (model["unk_token"], _UNKNOWN),
                "continuing_subword_prefix": (model["continuing_subword_prefix"], _INSIDE),
                "max_input_chars_per_word": (model["max_input_chars_per_word"], _LONGEST_WORD),
            }
            marks = [token["content"] for token in tree["added_tokens"]]
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise ValueError("it is not a JSON tokenizer of word pieces") from None
        for key, (given, expected) in settings.items():
            if given != expected:
                raise ValueError(f"its {key} is {given!r}; only {expected!r} can be used")
        is_valid = (
            isinstance(vocabulary, dict)
            and all(type(number) is int and 0 <= number < 2**31 for number in vocabulary.values())
            and all(isinstance(mark, str) and mark in vocabulary for mark in marks)
        )
        if not is_valid:
            raise ValueError("its vocabulary is not valid")
        return cls(vocabulary, marks)

    def encode(self, text: str, most: int) -> list[int]:
        """The token ids of a text, including start and end, at most `most`."""
        numbers = [self._vocabulary[_BEGIN]]
        for place, part in enumerate(self._marks.split(text)):
            if place % 2:  # a mark, between texts
                numbers.append(self._vocabulary[part])
                continue
            for word in words(part):
                if len(numbers) >= most - 1:
                    break
                numbers += self.numbers_of_word(word)
        return [*numbers[: most - 1], self._vocabulary[_END]]

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The longest pieces of a word from left to right; the word is unknown if a part is."""
        unknown = (self._vocabulary[_UNKNOWN],)
        if len(word) > _LONGEST_WORD:
            return unknown
        numbers: list[int] = []
        start, before = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._vocabulary.get(before + word[start:end])
                if number is not None:
                    break
            else:
                return unknown
            numbers.append(number)
            start, before = end, _INSIDE
        return tuple(numbers)


def words(text: str) -> list[str]:
    """The words and punctuation marks of a text, lowercased and without accents."""
    cleaned = "".join(map(_cleaned, text))
    if not cleaned.isascii():
        cleaned = unicodedata.normalize("NFD", cleaned)
    return "".join(map(_set_apart, cleaned)).split()


@lru_cache(2**16)
def _cleaned(character: str) -> str:
    """The first replacement: control characters dropped, ideographs spaced."""
    kind = unicodedata.category(character)
    if character in "\t\n\r" or kind in ("Zs", "Zl", "Zp"):
        return " "
    if kind in ("Cc", "Cf", "Co", "Cs") or character == "\ufffd":
        return ""
    is_ideograph = any(low <= ord(character) <= high for low, high in _IDEOGRAPHS)
    return f" {character} " if is_ideograph else character


@lru_cache(2**16)
def _set_apart(character: str) -> str:
    """The second replacement: accents dropped, letters lowercased, punctuation spaced."""
    if unicodedata.category(character) == "Mn":
        return ""
    # ASCII symbols count as punctuation.
    return "".join(
        f" {each} " if each in "$+<=>^`|~" or unicodedata.category(each)[0] == "P" else each
        for each in character.lower()
    )
