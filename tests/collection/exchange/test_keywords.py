from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.collection.exchange.keywords import Keywords, keyword_tag, levels_of


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("sea", "sea"),
        (" Places | Rome ", "Places|Rome"),
        ("|Places||Rome|", "Places|Rome"),
        (2024, "2024"),
        (1.5, "1.5"),
        ("Zu\u0308rich", "Zürich"),
        ("two\nlines\x1b[31m", "two lines [31m"),
        (" | ", ""),
        ("\ud800\uffff", ""),
    ],
)
def test_the_tag_of_a_keyword(text, tag):
    assert keyword_tag(text) == tag


@pytest.mark.parametrize(
    ("fields", "tags"),
    [
        # Lightroom and darktable: all levels are flat keywords as well; digiKam: the last one.
        ({"paths": ("A|B|C",), "flat": ("A", "B", "C", "x")}, ["A|B|C", "x"]),
        ({"slashed": ("A/B",), "flat": ("B",), "iptc": ("B",)}, ["A|B"]),
        ({"paths": ("A|B",), "slashed": ("A/B", "A/C"), "flat": ("A/B", "A|B")}, ["A|B", "A|C"]),
        # A level that is listed on its own is a tag.
        ({"paths": ("A|B", "A"), "flat": ("A", "B")}, ["A|B", "A"]),
        # digiKam has no other way to write a slash.
        ({"paths": ("AC/DC", "M|AC/DC"), "slashed": ("AC/DC", "M/AC/DC")}, ["AC/DC", "M|AC/DC"]),
        ({"slashed": ("AC/DC",)}, ["AC|DC"]),
        ({"flat": ("A|B", "B", "7", "7")}, ["A|B", "B", "7"]),
        # IPTC has cut off what is longer than 64 bytes, between two characters.
        ({"flat": ("x" * 70,), "iptc": ("x" * 64, "x" * 30)}, ["x" * 70, "x" * 30]),
        ({"flat": ("ü" * 40,), "iptc": ("ü" * 32,)}, ["ü" * 40]),
        ({}, []),
    ],
)
def test_the_union_of_all_fields_has_each_tag_once(fields, tags):
    assert Keywords(**fields).all_tags() == tags


def test_tags_that_programs_give_for_themselves_are_left_out():
    found = Keywords(
        paths=("darktable|exported", "sea"),
        slashed=("_Digikam_Internal_Tags_/Color Label None",),
        flat=("darktable", "exported", "sea"),
    )
    assert found.tags() == ["sea"]
    assert len(found.all_tags()) == 3


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
tags = st.lists(st.lists(names, min_size=1, max_size=3).map("|".join).map(keyword_tag), max_size=5)


@given(tags)
def test_written_tags_are_read_back(given_tags):
    given_tags = [tag for tag in dict.fromkeys(given_tags) if tag]
    written = Keywords(
        tuple(given_tags),
        tuple(tag.replace("|", "/") for tag in given_tags),
        tuple(levels_of(given_tags)),
        tuple(levels_of(given_tags)),
    )
    assert written.all_tags() == given_tags
    assert [keyword_tag(tag) for tag in given_tags] == given_tags
