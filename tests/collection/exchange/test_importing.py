from __future__ import annotations

import pytest

from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.exchange.importing import KeptDecision, import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.records import content_of


@pytest.fixture
def photos(tmp_path):
    """Five items: a/1.jpg, a/2.jpg, b/1.jpg, c.jpg, and one whose file is gone."""
    with Collection.create(tmp_path / "photos", kind="pictures") as collection:
        root = str(tmp_path / "root")
        paths = ["a/1.jpg", "a/2.jpg", "b/1.jpg", "Zürich.jpg", "gone.jpg"]
        collection.add(
            [
                NewItem(content_of(path.encode()), [n, 1.0], (FileState(root, path, 1, 1),), path)
                for n, path in enumerate(paths)
            ]
        )
        collection.set_files(root, missing=["gone.jpg"])
        yield collection


def decisions(collection):
    return {
        (item.id, tag): one.is_yes for item in collection.items() for tag, one in item.tags.items()
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a/1.jpg", 1),
        ("./a//1.jpg", 1),
        (" a/2.jpg ", 2),
        ("a\\2.jpg", 2),
        ("2.jpg", 2),
        ("2", 2),
        ("a/1", 1),
        ("1.jpg", "several"),
        ("Zu\u0308rich.jpg", 4),
        ("gone.jpg", 5),
        ("c/1.jpg", "no item"),
        ("none.jpg", "no item"),
        ("\ud800.jpg", "no item"),
        ("/etc/2.jpg", "no item"),
    ],
)
def test_files_are_matched_by_what_they_are_called(photos, name, found):
    report = import_files(photos, [TaggedFile(name, ("sea",))])
    if isinstance(found, int):
        assert decisions(photos) == {(found, "sea"): True}
    else:
        assert decisions(photos) == {}
        ((named, reason),) = report.unmatched
        assert named == name
        assert found in reason


def test_files_are_matched_by_their_place_and_their_content(photos, tmp_path):
    files = [
        TaggedFile(str(tmp_path / "root" / "a" / "1.jpg"), ("whole",)),
        TaggedFile("../root/b/1.jpg", ("beside",)),
        TaggedFile("elsewhere/x.jpg", ("content",), content=content_of(b"a/2.jpg")),
        TaggedFile("b/1.jpg", ("path",), content=content_of(b"unknown")),
        TaggedFile("elsewhere/2.jpg", ("unknown",), content=content_of(b"unknown")),
    ]
    report = import_files(photos, files, beside=tmp_path / "tables")
    assert decisions(photos) == dict.fromkeys(
        [(1, "whole"), (3, "beside"), (2, "content"), (3, "path")], True
    )
    assert [name for name, _ in report.unmatched] == ["elsewhere/2.jpg"]


def test_current_paths_count_more_than_former_ones(photos, tmp_path):
    root = tmp_path / "root"
    photos.set_files(root, [FileState(str(root), "moved.jpg", 1, 1, 2)], missing=["a/2.jpg"])
    files = (FileState(str(root), "a/2.jpg", 1, 1),)
    (number,) = photos.add([NewItem(content_of(b"new"), [9.0, 1.0], files, "a/2.jpg")])
    import_files(photos, [TaggedFile("a/2.jpg", ("sea",))])
    assert decisions(photos) == {(number, "sea"): True}


def test_an_import_is_one_change_that_can_be_undone(photos):
    photos.tag(1, ["sea"])
    before = decisions(photos)
    changes = len(photos.changes(100))
    files = [
        TaggedFile("a/1.jpg", ("sea", "2024"), ("sky",)),
        TaggedFile("a/2.jpg", ("Places|Rome", "2024")),
        TaggedFile("b/1.jpg", ()),
    ]
    report = import_files(photos, files)
    assert (report.files, report.given, report.rejected, report.known) == (2, 3, 1, 1)
    assert len(photos.changes(100)) == changes + 1
    assert decisions(photos) == before | {
        (1, "2024"): True,
        (1, "sky"): False,
        (2, "Places|Rome"): True,
        (2, "2024"): True,
    }
    again = import_files(photos, files)
    assert (again.given, again.rejected, again.known) == (0, 0, 5)
    assert len(photos.changes(100)) == changes + 1
    photos.undo()
    assert decisions(photos) == before


@pytest.mark.parametrize("overrule", [False, True])
def test_what_was_decided_stays_unless_it_is_overruled(photos, overrule):
    photos.reject(1, ["sea"])
    photos.tag(1, ["sky"])
    files = [TaggedFile("a/1.jpg", ("sea", "land"), ("sky",))]
    report = import_files(photos, files, overrule=overrule)
    if overrule:
        assert (report.overruled, report.kept) == (2, [])
        assert decisions(photos) == {(1, "sea"): True, (1, "sky"): False, (1, "land"): True}
    else:
        assert report.kept == [
            KeptDecision(1, "a/1.jpg", "sea", False),
            KeptDecision(1, "a/1.jpg", "sky", True),
        ]
        assert (report.overruled, report.given) == (0, 1)
        assert decisions(photos) == {(1, "sea"): False, (1, "sky"): True, (1, "land"): True}


def test_failures_are_named_and_the_rest_is_imported(photos):
    files = [
        TaggedFile("a/1.jpg", ("x" * 2000, "sea"), ("sea",)),
        TaggedFile("a/2.jpg", ("a\nb", "sky")),
    ]
    report = import_files(photos, files)
    assert decisions(photos) == {(1, "sea"): True, (2, "sky"): True}
    assert len(report.problems) == 3
    assert all(one.startswith(("a/1.jpg: ", "a/2.jpg: ")) for one in report.problems)
    assert not any("\n" in one for one in report.problems)
