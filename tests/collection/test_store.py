"""Items, files, tags and decisions of a collection, and undo."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import traceback
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import sparse

from nearlabel.collection import (
    Collection,
    CollectionError,
    FileState,
    NewItem,
    change_log,
    is_collection,
)
from nearlabel.collection.folder_checks import NotInCollectionError, TagTakenError
from nearlabel.collection.records import content_of, plain_summary, summary_of, vector_content


def vector(name: str) -> list[float]:
    rng = np.random.default_rng(list(name.encode()))
    return rng.normal(size=3).astype(np.float32).tolist()


def new(content: str, *paths: str, root: str = "/photos") -> NewItem:
    files = tuple(FileState(root, path, len(content), 7) for path in paths)
    return NewItem(content_of(content.encode()), vector(content), files)


def paths(item) -> list[str]:
    return [file.path for file in item.files]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "photos.nearlabel"


@pytest.fixture
def photos(folder):
    with Collection.create(folder, features="moments") as collection:
        yield collection


def test_what_is_created_is_a_collection(folder):
    assert not is_collection(folder)
    with Collection.create(folder, kind="texts", features="words") as collection:
        assert is_collection(folder)
        assert collection.settings.kind == "texts"
        assert collection.settings.width is None
        assert collection.settings.method["name"] == "MLkNN"
        assert (collection.items(), collection.tags(), collection.changes()) == ([], [], [])
        assert collection.counts()["items"] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["collection.sqlite", "lock"]


def test_a_collection_needs_a_folder_of_its_own(folder, tmp_path):
    folder.mkdir()
    Collection.create(folder, kind="vectors").close()
    with pytest.raises(FileExistsError, match="empty"):
        Collection.create(folder)
    with pytest.raises(FileNotFoundError, match="no such collection"):
        Collection(tmp_path / "other")
    with pytest.raises(CollectionError, match="is not a collection"):
        Collection(tmp_path)
    with pytest.raises(ValueError, match="kind must be one of .*got 'songs'"):
        Collection.create(tmp_path / "other", kind="songs")
    assert [path.name for path in tmp_path.iterdir()] == ["photos.nearlabel"]


def test_the_same_content_is_one_item(photos):
    assert photos.add([new("a", "a.jpg"), new("b", "b.jpg"), new("a", "copy.jpg")]) == [1, 2, 1]
    assert paths(photos.item(1)) == ["a.jpg", "copy.jpg"]
    assert photos.add([new("a", "third.jpg")]) == [1]
    assert paths(photos.item(1)) == ["a.jpg", "copy.jpg", "third.jpg"]
    assert photos.add([new("a", "third.jpg")]) == [1]
    assert len(photos.changes()) == 2  # the last one changed nothing


def test_vectors_are_those_that_were_given(photos):
    names = ["a", "b", "c"]
    photos.add([new(name) for name in names])
    np.testing.assert_array_equal(photos.vectors([3, 1]), np.float32([vector("c"), vector("a")]))
    assert photos.vectors([3]).dtype == np.float32
    with pytest.raises(CollectionError, match="no item 4"):
        photos.vectors([4])
    with pytest.raises(ValueError, match="3 features.*2 features"):
        photos.add([NewItem(content_of(b"x"), [1, 2])])
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(ValueError, match="finite"):
            photos.add([new("d"), NewItem(content_of(b"x"), [1, bad, 2])])
    assert photos.counts()["items"] == 3


def test_sparse_vectors(folder):
    dense = np.random.default_rng(3).normal(size=(5, 50))
    dense[np.abs(dense) < 1.5] = 0
    dense[2] = 0
    rows = sparse.csr_array(dense)
    with Collection.create(folder, kind="vectors") as collection:
        new_items = [
            NewItem(content_of(bytes([at])), rows[[at], :], name=f"row {at}") for at in range(5)
        ]
        ids = collection.add(new_items)
        assert collection.settings.is_sparse
        found = collection.vectors(ids[::-1])
        assert sparse.issparse(found)
        np.testing.assert_array_equal(found.toarray(), dense[::-1].astype(np.float32))
        with pytest.raises(ValueError, match="sparse vectors with 50.*dense vectors with 50"):
            collection.add([NewItem(content_of(b"x"), np.zeros(50))])
        assert not collection.item(3).is_missing


def test_a_moved_file_is_the_same_item(photos):
    photos.add([new("a", "a.jpg"), new("b", "b.jpg")])
    photos.tag(1, "sea")
    moved = FileState("/photos", "2024/a.jpg", 1, 7, item=1)
    photos.set_files("/photos", [moved], missing=["a.jpg"])
    assert paths(photos.item(1)) == ["2024/a.jpg"]
    assert photos.item(1).yes == ["sea"]
    photos.set_files("/photos", missing=["2024/a.jpg"])
    assert photos.item(1).is_missing
    photos.add([new("a", "again.jpg")])  # found elsewhere later: where it was is out of date
    assert paths(photos.item(1)) == ["again.jpg"]
    assert not photos.item(1).is_missing
    assert photos.set_files("/photos", missing=["never.jpg"]) is None
    assert photos.set_files("/other", missing=["never.jpg"]) is None
    assert photos.roots() == ["/photos"]


def test_a_file_with_another_content_is_the_same_item(photos):
    photos.add([new("a", "a.jpg"), new("b", "b.jpg")])
    photos.tag([1, 2], "sea")
    before = photos._folder.learned.source.rows().learned.tolist()
    assert photos.add([new("edited", "a.jpg")]) == [1]
    assert photos.item(1).yes == ["sea"]
    assert photos.item(1).content == content_of(b"edited")
    np.testing.assert_array_equal(photos.vectors([1]), np.float32([vector("edited")]))
    rows = photos._folder.learned.source.rows()
    assert rows.ids.tolist() == [2, 1]  # learned again, and now the last
    assert rows.learned.tolist() == [before[1], before[1] + 1]
    photos.undo()
    np.testing.assert_array_equal(photos.vectors([1]), np.float32([vector("a")]))


def test_a_content_that_is_still_elsewhere_keeps_the_item(photos):
    photos.add([new("a", "a.jpg", "copy.jpg")])
    photos.tag(1, "sea")
    assert photos.add([new("edited", "a.jpg")]) == [2]
    assert paths(photos.item(1)) == ["copy.jpg"]
    assert photos.item(2).tags == {}
    # Within one call, too, whichever comes first.
    assert photos.add([new("more", "copy.jpg"), new("a", "moved.jpg")]) == [3, 1]
    assert paths(photos.item(1)) == ["moved.jpg"]


def test_decisions(photos):
    photos.add([new("a"), new("b")])
    change = photos.tag([1, 2], ["sea", "Places | Rome "])
    assert (change.kind, change.items, change.number) == ("tag", 2, 2)
    assert photos.tag(1, "sea") is None
    photos.reject(2, "sea")
    photos.tag(2, "dog", by="suggestion")
    assert photos.item(2).yes == ["Places|Rome", "dog"]
    assert photos.item(2).no == ["sea"]
    assert [decision.by for decision in photos.item(2).tags.values()] == [
        "person",
        "person",
        "suggestion",
    ]
    assert [tuple(tag) for tag in photos.tags()] == [
        ("sea", 1, 1),
        ("Places|Rome", 2, 0),
        ("dog", 1, 0),
    ]
    photos.set_tags(2, ["dog", "cat"])
    assert photos.item(2).yes == ["dog", "cat"]
    assert photos.item(2).no == ["sea", "Places|Rome"]
    photos.clear(2, ["sea", "dog", "cat", "Places|Rome", "unknown"])
    assert not photos.item(2).is_learned
    assert [tag.name for tag in photos.tags()] == ["sea", "Places|Rome"]
    photos.decide([(1, "sea", None), (2, "sea", False), (2, "sea", True)])
    assert photos.items(tag="sea") == [photos.item(2)]
    counts = photos.counts()
    assert (counts["tagged"], counts["learned"], counts["yes"], counts["no"]) == (2, 2, 2, 0)


def test_each_decision_may_have_an_author_of_its_own(photos):
    photos.add([new("a"), new("b")])
    change = photos.decide(
        [(1, "sea", True), (1, "sky", True, "suggestion"), (2, "sky", False, "person")], by="person"
    )
    assert (change.kind, change.items) == ("decide", 2)
    assert {tag: one.by for tag, one in photos.item(1).tags.items()} == {
        "sea": "person",
        "sky": "suggestion",
    }
    assert photos.item(2).tags["sky"][:2] == (False, "person")
    photos.decide([(1, "dog", True), (1, "cat", False, "person")], by="suggestion")
    assert [one.by for one in photos.item(1).tags.values()][2:] == ["suggestion", "person"]
    assert photos.decide([(1, "sky", True, "person")]) is None  # it is already decided
    assert photos.item(1).tags["sky"].by == "suggestion"
    photos.decide([(1, "sky", None, "person"), (1, "sky", False, "suggestion")])
    assert photos.item(1).tags["sky"][:2] == (False, "suggestion")  # the last one counts
    for by in ("robot", None, 1):
        with pytest.raises(ValueError, match="by must be one of 'person', 'suggestion'; got"):
            photos.decide([(1, "new", True), (2, "new", True, by)])
    assert "new" not in [tag.name for tag in photos.tags()]


@pytest.mark.parametrize("name", ["", "  ", "a|", "|a", "a||b", "a\nb", "a\x1b[31mb", "\ud800"])
def test_invalid_names_of_tags(photos, name):
    photos.add([new("a")])
    with pytest.raises(ValueError, match="tags: the tag"):
        photos.tag(1, name)
    assert photos.changes()[0].kind == "add"


def test_names_are_composed(photos):
    photos.add([new("a")])
    photos.tag(1, ["cafe\u0301", "caf\u00e9", "<b>&amp;'\";--", "12"])
    assert photos.item(1).yes == ["caf\u00e9", "<b>&amp;'\";--", "12"]


def test_unknown_ids_and_tags(photos):
    photos.add([new("a")])
    photos.tag(1, "sea")
    for wrong, error in ((2, "no item 2"), (0, "id must be"), (2**63, "id must be")):
        with pytest.raises(ValueError, match=error):
            photos.tag([1, wrong], "dog")
    with pytest.raises(TypeError, match="id must be"):
        photos.item("1")
    with pytest.raises(CollectionError, match="no tag 'seas'; did you mean 'sea'"):
        photos.rename_tag("seas", "ocean")
    with pytest.raises(CollectionError, match="no tag"):
        photos.items(tag="dog")
    assert [tag.name for tag in photos.tags()] == ["sea"]
    assert photos.suggest(1) == []


def test_unknown_and_existing_names_have_separate_errors(photos):
    photos.add([new("a")])
    photos.tag(1, ["sea", "sky"])
    for ask in (
        lambda: photos.item(2),
        lambda: photos.content(2),
        lambda: photos.vectors([2]),
        lambda: photos.suggest(2),
        lambda: photos.similar(2),
        lambda: photos.find("b.jpg"),
        lambda: photos.forget(2),
        lambda: photos.decide([(2, "sea", True)]),
        lambda: photos.ids("dog"),
        lambda: photos.questions(tag="dog"),
        lambda: photos.rename_tag("dog", "cat"),
    ):
        with pytest.raises(NotInCollectionError, match=f"{photos.path} has no (item|tag)"):
            ask()
    with pytest.raises(TagTakenError, match="already has the tag 'sky': merge"):
        photos.rename_tag("sea", "sky")
    assert issubclass(NotInCollectionError, CollectionError)
    assert issubclass(TagTakenError, CollectionError)


def test_a_new_name_that_makes_a_level_below_too_long_is_refused(photos):
    photos.add([new("a")])
    photos.tag(1, f"a|{'b' * 600}")
    with pytest.raises(ValueError, match="new: the tag 'c.*has 1,?101 characters; at most 1,?000"):
        photos.rename_tag("a", "c" * 500)
    assert photos.item(1).yes == [f"a|{'b' * 600}"]


def test_renamed_tags_take_the_levels_below_along(photos):
    photos.add([new("a"), new("b")])
    photos.tag(1, ["Places", "Places|Rome", "Placeses"])
    photos.tag(2, "sea")
    photos.rename_tag("Places", "Orte")
    assert photos.item(1).yes == ["Orte", "Orte|Rome", "Placeses"]
    with pytest.raises(CollectionError, match="already has the tag 'sea'"):
        photos.rename_tag("Orte", "sea")
    photos.rename_tag("Orte", "Orte|Rome")  # names move by one
    assert photos.item(1).yes == ["Orte|Rome", "Orte|Rome|Rome", "Placeses"]
    photos.rename_tag("Orte|Rome", "Orte")
    assert photos.rename_tag("sea", "sea") is None
    assert photos.undo().kind == "rename_tag"
    assert photos.item(1).yes == ["Orte|Rome", "Orte|Rome|Rome", "Placeses"]
    photos.undo()
    photos.undo()
    assert photos.item(1).yes == ["Places", "Places|Rome", "Placeses"]


def test_merged_tags(photos):
    photos.add([new("a"), new("b"), new("c"), new("d")])
    photos.tag([1, 2], "cat")
    photos.reject([2, 3], "kitty")
    photos.reject(1, "kitten")
    photos.tag(4, "kitten", by="suggestion")
    before = [photos.item(id) for id in (1, 2, 3, 4)]
    photos.merge_tags(["kitty", "kitten", "cat"], "cat")
    answers = [photos.item(id).tags["cat"].is_yes for id in (1, 2, 3, 4)]
    assert answers == [True, True, False, True]
    assert photos.item(4).tags["cat"].by == "suggestion"
    assert [tag.name for tag in photos.tags()] == ["cat"]
    photos.undo()
    assert [photos.item(id) for id in (1, 2, 3, 4)] == before
    photos.merge_tags("kitten", "new")
    assert photos.item(4).yes == ["new"]
    assert photos.merge_tags("new", "new") is None


def test_undo_takes_back_a_run_of_changes(photos):
    group = photos.new_group()
    photos.add([new("a", "a.jpg")], group=group)
    photos.add([new("b", "b.jpg")], group=group)
    photos.tag(1, "sea")
    photos.add([new("c", "c.jpg")], group=group)
    assert photos.undo().kind == "add"
    assert [item.id for item in photos.items()] == [1, 2]
    assert photos.undo().kind == "tag"
    assert photos.undo().number == 2
    assert photos.items() == []
    assert photos.undo() is None
    assert photos.add([new("a")]) == [4]  # ids do not come again


def test_the_next_undo_is_what_undo_takes_back(photos):
    chance, steps = random.Random(1), ["tag"] * 3 + ["add", "forget"] + ["undo"] * 3
    photos.add([new(str(at)) for at in range(6)])
    for step in range(100):
        what, ids = chance.choice(steps), photos.ids()
        group = chance.choice([None, 500, photos.new_group(), photos.changes(1)[0].group])
        if what == "undo":
            run, before = photos.next_undo(), undone_of(photos)
            undone = photos.undo()
            assert (undone and undone.number) == (run[0].number if run else None)
            assert undone is None or (undone.is_undone and undone.summary == summary_of(run))
            passed_over = undone_of(photos) - before - {change.number for change in run}
            assert undone_of(photos) >= {change.number for change in run}
            assert all(number > run[0].number for number in passed_over)
        elif what == "add" or len(ids) < 2:
            photos.add([new(f"more {step}"), new(f"again {step}")], group=group)
        elif what == "forget":
            photos.forget(chance.choice(ids))
        else:
            photos.tag(chance.sample(ids, 2), chance.choice(["sea", "sky", "dog"]), group=group)
    while run := photos.next_undo():
        assert len({(change.group, change.is_undone) for change in run}) == 1
        assert photos.undo().number == run[0].number
    assert photos.undo() is None


def undone_of(collection):
    return {change.number for change in collection.changes(1000) if change.is_undone}


def test_a_run_that_is_undone_next(photos):
    assert photos.next_undo() == []
    assert photos.last_change() == 0
    group = photos.new_group()
    photos.add([new("a", "a.jpg"), new("b", "b.jpg")], group=group)
    photos.tag(1, "sea", group=group)
    photos.tag(2, "sea", group=group)
    run = photos.next_undo()
    assert [change.number for change in run] == [3, 2, 1]
    assert run == photos.changes(3)
    assert summary_of(run) == "added 2 items, tagged 2 items"
    photos.tag(1, "dog")
    assert [change.kind for change in photos.next_undo()] == ["tag"]
    assert photos.last_change() == photos.next_undo()[0].number == 4
    photos.undo()
    assert photos.next_undo() == run
    assert photos.last_change() == 5


def test_an_empty_change_is_not_the_next_undo(photos):
    """The log only has the name of the first tag, until the second change is undone."""
    photos.add([new("a"), new("b")])
    photos.tag(1, "sea")
    photos.tag(2, "sea")
    photos.forget(1)
    photos.undo()
    assert [change.kind for change in photos.next_undo()] == ["add"]
    assert photos.undo().kind == "add"
    assert photos.next_undo() == []


@pytest.mark.parametrize(
    ("kind", "items", "said"),
    [
        ("tag", 1, "tagged 1 item"),
        ("reject", 0, "took tags away from 0 items"),
        ("vectors", 12, "computed the vectors of 12 items again"),
        ("{1} {0.x}", 2, "{1} {0.x} 2 items"),  # of a manipulated database
    ],
)
def test_changes_in_words(kind, items, said):
    assert plain_summary(kind, items) == said
    assert summary_of([]) == ""


def test_items_in_parts(photos):
    photos.add([new(str(at), f"{at}.jpg") for at in range(5)])
    photos.tag([2, 4], "sea")
    photos.reject(5, "sea")
    photos.set_files("/photos", missing=["0.jpg"])

    def ids(**which):
        return [item.id for item in photos.items(**which)]

    assert ids(after=1, limit=2) == [2, 3]
    assert ids(tag="sea") == ids(state="tagged") == [2, 4]
    assert ids(state="untagged") == [1, 3, 5]
    assert ids(state="undecided") == [1, 3]
    assert ids(state="missing") == [1]


def test_items_by_a_part_of_their_name(photos):
    odd = os.fsdecode(b"caf\xe9/IMG_2.jpg")
    photos.add([new("a", "Beach/IMG_1.jpg"), new("b", odd), new("c", "in/img_1.png", "Copy.png")])
    photos.add([NewItem(content_of(b"d"), vector("d"), name="Gr\u00f6\u00dfe 50%_ca?")])

    def ids(name, **which):
        found = photos.ids(name=name, **which)
        assert [item.id for item in photos.items(name=name, **which)] == found
        return found

    assert ids("img_") == ids("IMG_") == [1, 2, 3]
    assert ids("IMG_1.P") == ids("in/") == [3]
    assert ids("cOPY") == [3]  # a second file
    assert ids(odd) == ids(odd.upper()) == ids("\udce9/img") == ids("af\udce9") == [2]
    assert ids("gr\u00f6\u00df") == ids("%_") == [4]  # no patterns
    assert ids("CA") == [2, 4]
    assert ids("") == ids(None) == [1, 2, 3, 4]
    assert ids("img 1") == ids("\0") == ids("/photos") == ids("\u00e9") == []
    assert ids("\ud83d") == ids("?") == [2, 4]  # an escape for half of a character
    photos.tag([1, 2], "sea")
    assert ids("img_1", tag="sea") == [1]
    assert ids("img_1", state="untagged") == [3]
    assert ids("img", after=1, limit=1) == [2]
    moved = FileState("/photos", "Summer/x.jpg", 1, 7, item=1)
    photos.set_files("/photos", [moved], missing=["Beach/IMG_1.jpg"])
    assert ids("summer") == ids("beach") == [1]
    with pytest.raises(TypeError, match="name must be a string; got 5"):
        photos.items(name=5)


def test_several_items_by_their_ids(photos):
    photos.add([new(str(at)) for at in range(1000)])
    assert photos.items_of([3, 1, 3, 5000]) == {1: photos.item(1), 3: photos.item(3)}
    assert [*photos.items_of(range(1000, 0, -1))] == [*range(1, 1001)]
    assert photos.items_of(2) == photos.items_of(np.array([2])) == {2: photos.item(2)}
    assert photos.items_of([]) == {}
    with pytest.raises(ValueError, match="id must be"):
        photos.items_of([1, 0])


def test_the_content_of_an_unchanged_file(photos, tmp_path):
    for name in ("a", "copy"):
        (tmp_path / name).write_bytes(b"content")
    photos.add([new("content", "a", "copy", root=str(tmp_path)), new("other")])
    assert photos.content(1) == b"content"
    (tmp_path / "a").write_bytes(b"CONTENT")
    assert photos.content(1) == b"content"  # that of the copy
    (tmp_path / "a").unlink()
    (tmp_path / "a").mkdir()
    (tmp_path / "copy").write_bytes(b"content, and more")
    for item in (1, 2):
        with pytest.raises(FileNotFoundError, match="no file of this item is unchanged"):
            photos.content(item)
    (tmp_path / "copy").write_bytes(b"content")
    photos.set_files(tmp_path, missing=["a", "copy"])
    assert photos.content(1) == b"content"  # it has come back


def test_items_are_called_by_where_their_files_are(photos):
    photos.add([new("a", "a.jpg", "b.jpg")])

    def called(found=(), missing=()):
        photos.set_files("/photos", [FileState("/photos", p, 1, 7, item=1) for p in found], missing)
        return photos.item(1).shown_name

    assert called() == "a.jpg"
    assert called(missing=["b.jpg"]) == "a.jpg"
    assert called(["2024/new.jpg"], ["a.jpg"]) == "2024/new.jpg"
    assert called([os.fsdecode(b"caf\xe9.jpg")], ["2024/new.jpg"]) == r"caf\xe9.jpg"
    assert called(missing=[os.fsdecode(b"caf\xe9.jpg")]) == "a.jpg"  # no file left
    assert called(["a.jpg"]) == "a.jpg"


def test_files_that_a_program_has_named_do_not_name_their_items(photos):
    """Uploads have the sha256 of their content as their names."""
    upload = f"{content_of(b'a').hex()}.jpg"
    photos.add([new("a", upload, root="/uploads")._replace(name="holiday.jpg")])
    assert photos.item(1).shown_name == "holiday.jpg"
    photos.set_files("/uploads", [FileState("/uploads", f"12/{upload}", 1, 7, item=1)], [upload])
    assert photos.item(1).shown_name == "holiday.jpg"
    photos.add([new("a", "2024/beach.jpg")])  # a person has the same photo
    assert photos.item(1).shown_name == "2024/beach.jpg"
    photos.set_files("/photos", missing=["2024/beach.jpg"])
    assert photos.item(1).shown_name == "holiday.jpg"


def test_items_are_found_by_id_name_and_path(photos, monkeypatch, tmp_path):
    (tmp_path / "in").mkdir()
    root = str(tmp_path / "in")
    photos.add([new("a", "x/one.jpg", root=root), new("b", "y/one.jpg", root=root)])
    photos.add([new("c", "12", root=root), new("d", "two.jpg", root=root)])
    monkeypatch.chdir(tmp_path)
    assert photos.find("2") == 2
    assert photos.find("12") == 3
    assert photos.find("x/one.jpg") == 1
    assert photos.find("in/y/one.jpg") == 2
    assert photos.find(f"{root}/two.jpg") == photos.find("two.jpg") == 4
    with pytest.raises(CollectionError, match=r"match 'one.jpg', 1, 2.*id:1"):
        photos.find("one.jpg")
    photos.add([new("e", "3", root=root), new("f", "id:1", root=root)])
    with pytest.raises(CollectionError, match=r"match '3', 3, 5.*id:3"):
        photos.find("3")
    assert photos.find("id:3") == 3
    assert photos.find("name:3") == 5
    assert photos.find("id:1") == 1
    assert photos.find("name:id:1") == 6
    with pytest.raises(CollectionError, match="did you mean 'two.jpg'"):
        photos.find("tow.jpg")


def test_undecodable_names(photos):
    name = os.fsdecode(b"caf\xe9\n.jpg")
    photos.add([new("a", name)])
    assert paths(photos.item(1)) == [name]
    assert photos.files("/photos")[0].path == name
    assert photos.find(name) == 1
    photos.item(1).name.encode()


def test_a_clock_that_jumps_back(photos, monkeypatch):
    photos.add([new("a")])
    times = iter([5_000_000, 4_000_000, -1, 2**80])
    monkeypatch.setattr(change_log.time, "time_ns", lambda: next(times))
    for tag in ("a", "b", "c", "d"):
        photos.tag(1, tag)
    assert [change.number for change in photos.changes(4)] == [5, 4, 3, 2]
    assert photos.item(1).tags["c"].at == datetime(1970, 1, 1, tzinfo=UTC)
    monkeypatch.undo()
    photos.undo()
    photos.undo()
    assert photos.item(1).yes == ["a", "b"]


def test_one_process_writes_and_others_read(photos, folder):
    photos.add([new("a", "a.jpg")])
    with pytest.raises(BlockingIOError, match=f"process {os.getpid()} .*readonly=True"):
        Collection(folder)
    with Collection(folder, readonly=True) as reader:
        assert reader.item(1).yes == []
        photos.tag(1, "sea")
        photos.add([new("b", "b.jpg")])
        assert reader.item(1).yes == ["sea"]
        np.testing.assert_array_equal(reader.vectors([2]), photos.vectors([2]))
        with pytest.raises(CollectionError, match="readonly=True"):
            reader.tag(1, "sky")
    code = f"""
from nearlabel.collection import Collection
try:
    Collection({str(folder)!r})
except BlockingIOError:
    print(Collection({str(folder)!r}, readonly=True).item(1).yes)
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "['sea']\n"


def test_threads_ask_and_change(photos):
    photos.add([new(str(at)) for at in range(20)])
    photos.tag([1, 2, 3], "e")
    failures = []

    def work(tag: str) -> None:
        try:
            for item in range(1, 21):
                photos.tag(item, tag)
                assert tag in photos.item(item).yes
                photos.suggest(item, 3)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(tag,)) for tag in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [tag[1:] for tag in photos.tags()] == [(3, 0), *[(20, 0)] * 4]


def test_closed_collections_say_so(folder):
    collection = Collection.create(folder, kind="vectors")
    collection.close()
    collection.close()
    for ask in (collection.items, collection.undo, lambda: collection.suggest(1)):
        with pytest.raises(CollectionError, match="is closed"):
            ask()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_child_of_a_fork_leaves_it_alone(photos):
    photos.add([new("a")])
    child = os.fork()
    if child == 0:
        try:
            photos.tag(1, "child")
        except CollectionError:
            photos.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    photos.tag(1, "parent")
    assert photos.item(1).yes == ["parent"]


def test_the_identity_of_a_vector():
    assert vector_content("a", [1, 2]) == vector_content("a", np.array([1.0, 2.0]))
    assert len({vector_content(n, v) for n, v in (("a", [1]), ("b", [1]), ("a", [2]))}) == 3


@pytest.mark.engines
def test_two_examples_are_enough(photos):
    """Each has one neighbor; without it there are no votes."""
    photos.add([new("a"), new("b")])
    photos.tag(1, "sea")
    assert photos.suggest(1) == photos.suggest(2) == []
    photos.tag(2, "sky")
    (suggestion,) = photos.suggest(1)
    assert suggestion.tag == "sky"
    assert [voter.id for voter in suggestion.voters] == [2]
