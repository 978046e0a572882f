import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

import nearlabel as nl
from nearlabel.features import FrequentWords

TEXTS = ["the sea, the sea", "Sea and sky at night", "the night sky", "a red desert", ""]
texts = st.lists(
    st.text("ab c.é", max_size=12) | st.sampled_from(TEXTS), min_size=1, max_size=8
).filter(lambda drawn: any(_words(text) for text in drawn))


def _words(text):
    return re.findall(r"\b\w\w+\b", text.lower())


def literal(train, share):
    """The words of section 4.3: by document frequency in the training texts, then the alphabet."""
    frequency = Counter(word for text in train for word in set(_words(text)))
    kept = max(round(share * len(frequency)), 1)
    return sorted(sorted(frequency, key=lambda word: (-frequency[word], word))[:kept])


@given(texts, st.lists(st.text("ab c.é", max_size=12), max_size=4), st.floats(0.01, 1))
def test_as_a_literal_version(train, new, share):
    words = FrequentWords(share).fit(train)
    expected = literal(train, share)
    assert words.get_feature_names_out().tolist() == expected
    counts = [[_words(text).count(word) for word in expected] for text in new]
    made = words.transform(new)
    assert made.toarray().tolist() == counts
    assert made.format == "csr"
    assert words.document_frequency_.tolist() == [
        sum(word in _words(text) for text in train) for word in expected
    ]


def test_stop_words():
    assert "the" in FrequentWords(0.5).fit(TEXTS).words_
    assert "the" not in FrequentWords(1.0, stop_words="english").fit(TEXTS).words_
    assert "sea" not in FrequentWords(1.0, stop_words=["sea"]).fit(TEXTS).words_


@pytest.mark.parametrize(
    ("parameters", "X", "words"),
    [
        ({"share": 0}, TEXTS, ["share", "0"]),
        ({"share": 1.5}, TEXTS, ["share", "1.5"]),
        ({"stop_words": "german"}, TEXTS, ["stop_words", "german"]),
        ({"stop_words": [1]}, TEXTS, ["stop_words", "1"]),
        ({}, "one text", ["X", "one text"]),
        ({}, ["a text", None], ["X", "position 1", "None"]),
        ({}, 5, ["X", "5"]),
        ({}, ["", "a ?"], ["X", "no words"]),
    ],
)
def test_invalid_arguments(parameters, X, words):
    with pytest.raises((TypeError, ValueError)) as error:
        FrequentWords(**parameters).fit(X)
    assert all(word in str(error.value) for word in words)


def test_scikit_learns_contract():
    words = clone(FrequentWords(0.3, stop_words=["sea"]))
    assert words.get_params() == {"share": 0.3, "stop_words": ["sea"]}
    with pytest.raises(ValueError, match="not fitted"):
        words.transform(TEXTS)
    assert words.fit(iter(TEXTS)).transform(iter(TEXTS)).shape == (5, len(words.words_))


@pytest.mark.parametrize("stop_words", [None, "english", ["night"]])
def test_in_model_files_beside_tf_idf(tmp_path, stop_words):
    both = FeatureUnion([
        ("counts", FrequentWords(0.5, stop_words=stop_words)), ("tf-idf", TfidfVectorizer())
    ])  # fmt: skip
    model = nl.make_pipeline(both, nl.MLkNN(2)).fit(TEXTS, [["sea"], ["sea"], ["sky"], [], []])
    nl.save(model, tmp_path / "texts.model")
    loaded = nl.load(tmp_path / "texts.model")
    new = ["the red night", "sea"]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    first = loaded[0].transformer_list[0][1]
    assert first.get_params() == both.transformer_list[0][1].get_params()
    assert first.document_frequency_.tolist() == model[0]["counts"].document_frequency_.tolist()


def test_stop_words_that_can_be_read_only_once_are_refused():
    with pytest.raises(TypeError, match="stop_words .*generator"):
        FrequentWords(stop_words=(word for word in ["the"])).fit(["the sea"])
