from __future__ import annotations

import os
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.collection.exchange.keywords import keyword_tag
from nearlabel.collection.exchange.tag_folders import (
    folder_of,
    read_tag_folders,
    write_tag_folders,
)
from nearlabel.collection.exchange.tag_tables import TaggedFile


def tagged(path, *tags, id=1):
    return TaggedFile(path.name, tags, id=id, place=path)


def found(top):
    files = {}
    for one in read_tag_folders(top):
        files.setdefault(one.content, set()).update(one.yes)
    return files


@pytest.mark.parametrize("copy", [False, True])
def test_pictures_are_linked_to_or_copied_and_found_again(tmp_path, copy):
    pictures = [tmp_path / "one" / "a.jpg", tmp_path / "two" / "a.jpg", tmp_path / "two" / "b.jpg"]
    for number, path in enumerate(pictures):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"picture %d" % number)
    files = [
        tagged(pictures[0], "sea", "Places|Rome"),
        tagged(pictures[1], "sea", id=2),
        tagged(pictures[2], id=3),
        TaggedFile("gone.jpg", ("sea",), id=4),
        TaggedFile("gone too.jpg", ("sea",), id=5, place=tmp_path / "gone too.jpg"),
    ]
    written = write_tag_folders(tmp_path / "out", files, copy=copy)
    assert written == (3, ["gone.jpg", "gone too.jpg"])
    there = sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.jpg")
    )
    assert there == ["Places/Rome/a.jpg", "sea/a-2.jpg", "sea/a.jpg"]
    assert (tmp_path / "out" / "sea" / "a.jpg").is_symlink() is not copy
    digests = [sha256(path.read_bytes()).digest() for path in pictures[:2]]
    assert found(tmp_path / "out") == {digests[0]: {"sea", "Places|Rome"}, digests[1]: {"sea"}}
    with pytest.raises(FileExistsError, match="not empty"):
        write_tag_folders(tmp_path / "out", files)
    with pytest.raises(FileExistsError, match="not a folder"):
        write_tag_folders(pictures[0], files)


hostile = [
    "..",
    ".",
    "../../x",
    "/etc",
    "a\\b",
    "CON",
    "nul.txt",
    "a.",
    " a",
    "%2F",
    "a:b",
    "~",
    "-rf",
]
levels = st.sampled_from(hostile) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), max_size=8
)


@given(st.lists(levels, min_size=1, max_size=3).map("|".join).map(keyword_tag).filter(bool))
def test_any_tag_is_a_folder_and_back(tmp_path_factory, tag):
    top = tmp_path_factory.mktemp("folders")
    picture = top / "a.jpg"
    picture.write_bytes(b"picture")
    folder = folder_of(tag)
    assert not folder.is_absolute()
    assert not {"..", "."} & set(folder.parts)
    assert len(folder.parts) == tag.count("|") + 1
    write_tag_folders(top / "out", [tagged(picture, tag)])
    assert [one.yes for one in read_tag_folders(top / "out")] == [(tag,)]
    assert {path.name for path in top.iterdir()} == {"a.jpg", "out"}


@pytest.mark.skipif(os.name == "nt", reason="no pipes and links for everybody")
def test_other_files_in_folders(tmp_path):
    (tmp_path / "sea" / ".hidden").mkdir(parents=True)
    (tmp_path / "top.jpg").touch()
    (tmp_path / "sea" / ".a.jpg").touch()
    (tmp_path / "sea" / ".hidden" / "a.jpg").touch()
    os.mkfifo(tmp_path / "sea" / "pipe")
    (tmp_path / "sea" / "again").symlink_to(tmp_path)
    (tmp_path / "sea" / "dangling").symlink_to(tmp_path / "none")
    assert list(read_tag_folders(tmp_path)) == []
