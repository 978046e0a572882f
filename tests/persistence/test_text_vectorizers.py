"""Regular expressions in model files: supported ones take time proportional to the text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import nearlabel as nl
from nearlabel.persistence.text_vectorizers import is_plain_pattern

USUAL = [
    *(
        CountVectorizer().token_pattern,
        r"\b\w+\b",
        r"(?u)\b\w+\b",
        r"[^,]+",
        r"[^;|]+",
        r"\S+",
        r"\w",
    ),
    *(r"\b[a-zA-Z][a-zA-Z0-9]+\b", r"\w{2,}", r"\b\w{3,15}\b", r"#?\w+", r"\b[\w'-]+\b", ".*"),
]
COSTLY = [
    *("(a+)+$", "(a|a)*b", r"\w*\w*\w*x", "a?a?a?a?aaaa", r"[a-z]+\b", r"\w+(?=\s)", r"(\w)\1+"),
    *("(", "", "x" * 201, "a{1,9}{1,9}", "a{1,9}a{1,9}", "a**", "a+?b", "a{1000,}", "^a", "a$"),
]


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_patterns_are_supported(pattern, tmp_path):
    text = "sea-side, the sea; x #tag it's | 42"
    model = CountVectorizer(token_pattern=pattern).fit([text])
    nl.save(model, tmp_path / "file")
    again = nl.load(tmp_path / "file")
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    assert (again.transform([text]) != model.transform([text])).nnz == 0


@pytest.mark.parametrize("pattern", COSTLY)
def test_other_patterns_are_refused(pattern):
    assert not is_plain_pattern(pattern)


PARTS = st.sampled_from(
    [r"\b", r"\w", r"\S", "a", "[ab]", "[^b]", ".", "+", "*", "?", "{2,}", "{1,3}", "-"]
)


@given(parts=st.lists(PARTS, min_size=1, max_size=6))
def test_supported_patterns_compile_and_are_fast(parts):
    pattern = "".join(parts)
    if not is_plain_pattern(pattern):
        return
    compiled = re.compile(pattern)
    for text in ("a" * 3000 + "!", "a-" * 1500 + "!", "-" * 3000, "ab " * 1000, "a" * 3000 + "-"):
        start = time.thread_time()
        compiled.findall(text)
        assert time.thread_time() - start < 0.5  # n squared takes seconds
