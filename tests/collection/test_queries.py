"""Queries about items, vectors and files."""

from __future__ import annotations

import numpy as np
import pytest

from nearlabel.collection import Collection, CollectionError, NewItem
from nearlabel.collection.item_features import item_features
from nearlabel.collection.queries import named_items, queries
from nearlabel.collection.records import content_of, vector_content
from nearlabel.features.pictures import UnreadablePicture

SEA, SNOW, NEW = b"waves and sand", b"snow on rocks", b"sand and rocks"


@pytest.fixture
def texts(tmp_path):
    """Two texts, and a folder with one of them, a new one and two that cannot be read."""
    for name, content in {"b.txt": SEA, "c.txt": NEW, "d.txt": b"\xff", "e.txt": b"\0"}.items():
        (tmp_path / "files" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "files" / name).write_bytes(content)
    with Collection.create(tmp_path / "c", kind="texts") as collection:
        rows = item_features("texts", collection.settings.features)([SEA, SNOW])
        collection.add(
            [
                NewItem(content_of(content), rows[at : at + 1], name=name)
                for at, (name, content) in enumerate([("sea", SEA), ("snow", SNOW)])
            ]
        )
        collection.tag(1, "sea")
        yield collection


def test_an_order_of_items_vectors_and_files(texts, tmp_path):
    folder = tmp_path / "files"
    vector = texts.vectors([2])
    steps = []
    found, unread = queries(
        texts, [2, vector, str(folder), NEW, "sea"], progress=lambda *step: steps.append(step)
    )
    assert [query.question for query in found[:1] + found[2:3] + found[-1:]] == [2, 1, 1]
    assert [query.name for query in found] == ["snow", "", "sea", str(folder / "c.txt"), "", "sea"]
    assert [query.file for query in found[2:4]] == [str(folder / "b.txt"), str(folder / "c.txt")]
    assert found[1].question is vector
    expected = item_features("texts", texts.settings.features)([NEW]).toarray()
    for query in (found[3], found[4]):
        assert np.array_equal(query.question.toarray(), expected)
        assert query.content == content_of(NEW)
        assert query.item is None
    assert [(error.name, error.reason.split(":")[0]) for error in unread] == [
        (str(folder / "d.txt"), "is not UTF-8 text"),
        (str(folder / "e.txt"), "is not text"),
    ]
    assert steps == [(8, 8)]
    assert found[2].record == {"id": 1, "name": "sea", "tags": ["sea"], "no": []}
    assert found[3].record == {"id": None, "name": found[3].name, "tags": None, "no": None}


def test_vectors_are_computed_once_for_contents_that_are_not_items(texts):
    asked = []

    def vectors(contents):
        asked.append([*contents])
        return np.zeros((len(asked[-1]), 1))

    queries(texts, [SEA, NEW, b"more", NEW], vectors)
    queries(texts, [SEA, 1, "id:2"], vectors)
    assert asked == [[NEW, b"more"]]


def test_what_is_not_there(texts, tmp_path):
    with pytest.raises(CollectionError, match="has no item 7"):
        queries(texts, [7])
    with pytest.raises(CollectionError, match="has no item with the id, file or name 'see'"):
        queries(texts, ["see"])
    with pytest.raises(CollectionError, match=r"has no item with the content of .*c\.txt; 'nearl"):
        named_items(texts, ["sea", str(tmp_path / "files" / "c.txt")])
    found = named_items(texts, ["snow", str(tmp_path / "files" / "b.txt"), "1"])
    assert [item.id for item in found] == [2, 1]


def test_an_error_that_is_not_about_one_file_is_raised(texts):
    def vectors(contents):
        raise ValueError("the network is not that of the collection")

    with pytest.raises(ValueError, match="the network is not that"):
        queries(texts, [NEW], vectors)
    (), (error,) = queries(texts, [b"\xff"])
    assert isinstance(error, UnreadablePicture)
    assert error.name == ""


def test_vectors_have_names_only(tmp_path):
    with Collection.create(tmp_path / "songs", kind="vectors") as songs:
        songs.add([NewItem(vector_content("a", [1.0]), [1.0], name="a")])
        (found,), unread = queries(songs, ["a"])
        assert (found.question, unread) == (1, [])
        with pytest.raises(ValueError, match="its vectors are given"):
            queries(songs, [b"content"])
