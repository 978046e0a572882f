from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.collection.exchange.keywords import keyword_tag
from nearlabel.collection.exchange.tag_tables import (
    TABLES,
    TaggedFile,
    read_csv_tags,
    read_json_tags,
    write_csv_tags,
    write_json_tags,
)
from nearlabel.datasets import DataError

DIGEST = bytes(range(32))


@pytest.mark.parametrize(
    "text",
    [
        "file,tags\na.jpg,sea;2024;Places|Rome\nb.jpg,\n",
        "\ufefftags,file\nsea; 2024 ;;Places | Rome;sea,a.jpg\n\n,b.jpg\n",
        'File;Tags;stars\na.jpg;"sea;2024;Places|Rome";3\nb.jpg;;\n',
        "sep=\t\nfile\ttags\r\na.jpg\tsea;2024;Places|Rome\r\nb.jpg\t\r\n",
    ],
)
def test_tables_from_users(tmp_path, text):
    path = tmp_path / "tags.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_csv_tags(path) == [
        TaggedFile("a.jpg", ("sea", "2024", "Places|Rome")),
        TaggedFile("b.jpg", ()),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1: the file is empty"),
        ("image,tags\na,b\n", "line 1: one column 'file' expected; got 'image', 'tags'"),
        ("file,tag\na,b\n", "did you mean 'tag'"),
        ("file,tags,tags\na,b,c\n", "one column 'tags'"),
        ("file,tags\na,b,c\n", "line 2: 2 cells expected; got 3"),
        ("file,tags\n,b\n", "line 2: file name expected"),
        ('file,tags\na,"b\n', "line 2: not a row"),
        ("file,tags\na,b\0\n", "NUL"),
    ],
)
def test_invalid_tables(tmp_path, text, reason):
    path = tmp_path / "tags.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=reason) as caught:
        read_csv_tags(path)
    assert str(caught.value).startswith(str(path))


def test_json_lines_of_others(tmp_path):
    path = tmp_path / "tags.jsonl"
    lines = [
        {"file": "a.jpg", "tags": ["sea", 2024, 1.5, ""], "not": "sky;land", "more": {}},
        {"sha256": DIGEST.hex(), "tags": "sea"},
        {"file": "b.jpg", "not": None, "tags": None},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    assert read_json_tags(path) == [
        TaggedFile("a.jpg", ("sea", "2024", "1.5"), ("sky", "land")),
        TaggedFile("", ("sea",), (), DIGEST),
        TaggedFile("b.jpg", ()),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "a JSON object"),
        ('{"file": "a"}', "tags: list of tags expected"),
        ('{"tags": []}', "file: file name expected"),
        ('{"file": 3, "tags": []}', "file: file name expected"),
        ('{"file": "a", "tags": [true]}', "tags: strings or numbers expected; got 'True'"),
        ('{"file": "a", "tags": {"b": 1}}', "tags: list"),
        ('{"file": "a", "tags": [], "not": [[]]}', "not: strings or numbers"),
        ('{"sha256": "12", "tags": []}', "64 hexadecimal digits"),
        ('{"sha256": 12, "tags": []}', "64 hexadecimal digits"),
        ('{"file": "a", "file": "b", "tags": []}', "twice"),
    ],
)
def test_invalid_json_lines(tmp_path, line, reason):
    path = tmp_path / "tags.jsonl"
    path.write_text('{"file": "a", "tags": []}\n' + line, encoding="utf-8")
    with pytest.raises(DataError, match=f"line 2.*{reason}"):
        read_json_tags(path)


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
tags = st.lists(names.map(keyword_tag).filter(bool), max_size=4, unique=True).map(tuple)
fields = st.tuples(names.filter(str.strip), tags, tags, st.sampled_from([None, DIGEST]))
files = st.lists(fields.map(lambda one: TaggedFile(*one)), max_size=4)


@given(files)
def test_json_lines_round_trip(tmp_path_factory, given_files):
    path = tmp_path_factory.mktemp("tags") / "tags.jsonl"
    write_json_tags(path, given_files)
    assert read_json_tags(path) == given_files


@given(files)
def test_tables_round_trip(tmp_path_factory, given_files):
    path = tmp_path_factory.mktemp("tags") / "tags.csv"
    plain = [
        TaggedFile(one.file, tuple(tag.replace(";", ":") for tag in dict.fromkeys(one.yes)))
        for one in given_files
    ]
    plain = [one._replace(yes=tuple(dict.fromkeys(one.yes))) for one in plain]
    for suffix in (".csv", ".tsv"):
        TABLES[suffix].write(path, plain)
        assert TABLES[suffix].read(path) == plain


def test_a_separator_in_the_name_of_a_tag(tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text("as before", encoding="utf-8")
    with pytest.raises(ValueError, match="'a;b'.*jsonl"):
        write_csv_tags(path, [TaggedFile("a.jpg", ("a;b",))])
    assert path.read_text(encoding="utf-8") == "as before"


def test_every_file_of_an_item_has_a_row(tmp_path):
    path = tmp_path / "tags.csv"
    write_csv_tags(path, [TaggedFile("a.jpg", ("sea", "sky"), others=("b/a.jpg",))])
    assert path.read_bytes() == b"file,tags\na.jpg,sea;sky\nb/a.jpg,sea;sky\n"
