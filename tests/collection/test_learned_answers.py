"""What a collection has learned is kept between openings."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearlabel.collection import Collection, learner, tag_answers
from nearlabel.collection.records import NewItem, vector_content
from nearlabel.common.files import FileError
from nearlabel.methods import retrieval


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed collection of forty items, thirty with tags, and its predictions."""
    X = np.random.default_rng(0).integers(-3, 4, (40, 5)).astype(np.float32)
    with Collection.create(tmp_path / "c", kind="vectors") as store:
        named = [(str(i), x) for i, x in enumerate(X)]
        store.add([NewItem(vector_content(name, x), x, name=name) for name, x in named])
        for item in range(1, 31):
            store.tag(item, ["all", "up" if X[item - 1, 0] > 0 else "down"])
        store.save_index()
    return tmp_path / "c"


def indexes(folder: Path) -> list[Path]:
    return [*folder.glob("index-*.model")]


def answers(store: Collection) -> list[object]:
    return [store.suggest(item) for item in (2, 5, 35, 40)]


def test_forgetting_keeps_what_was_learned_of_the_others(folder: Path) -> None:
    """Also without a query in this process: learning again would take long."""
    before = indexes(folder)
    with Collection(folder) as store:
        store.forget(3)
    (index,) = indexes(folder)
    assert [index] != before
    with Collection(folder, readonly=True) as store:
        found = answers(store)
        assert store.notes == []
    index.unlink()
    with Collection(folder, readonly=True) as store:
        assert answers(store) == found
        assert len(store.notes) == 1


def test_forgetting_works_with_a_damaged_index(folder: Path) -> None:
    (index,) = indexes(folder)
    index.write_bytes(b"no index")
    with Collection(folder) as store:
        store.forget(3)
        assert b"no index" not in b"".join(path.read_bytes() for path in indexes(folder))
        assert store.suggest(35)


def test_a_file_found_to_be_damaged_by_a_query_is_learned_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (index,) = indexes(folder)
    with Collection(folder, readonly=True) as store:
        expected, whole, states = answers(store), tag_answers.suggestions, []

    def damaged(state: Any, asked: Any, top: int) -> Any:
        states.append(state)
        if len(states) == 1:
            raise FileError("is altered", index)
        return whole(state, asked, top)

    monkeypatch.setattr(tag_answers, "suggestions", damaged)
    with Collection(folder, readonly=True) as store:
        assert answers(store) == expected
        (note,) = store.notes
    assert f"learned again from all items: {index.name} is altered" in note
    assert states[0] is not states[1]


def test_what_was_undone_was_never_learned(folder: Path) -> None:
    with Collection(folder) as store:
        before = answers(store)
        store.tag([35, 36], ["new", "up"])
        store.reject(4, "all")
        assert answers(store) != before
        store.undo()
        store.undo()
        assert answers(store) == before
        assert store.verify()


def test_readers_see_a_tag_in_their_next_answer(folder: Path) -> None:
    with Collection(folder) as store, Collection(folder, readonly=True) as reader:
        assert answers(reader) == answers(store)
        store.tag(35, "new")
        assert "new" in [one.tag for one in reader.suggest(36)]
        store.save_index()
        store.clear(35, "new")
        assert answers(reader) == answers(store)


@pytest.mark.parametrize("other_method", [False, True])
def test_queries_do_not_wait_while_a_file_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, other_method: bool
) -> None:
    """Other threads query and change meanwhile, and the file has the earlier state."""
    begun, go_on, write_index = threading.Event(), threading.Event(), learner.write_index

    def write_slowly(*what: Any) -> str:
        begun.set()
        assert go_on.wait(60)
        return write_index(*what)

    with Collection(folder) as store, ThreadPoolExecutor(1) as pool:
        store.tag(31, "all")
        store.clear(1, ["all", "up", "down"])  # its row is forgotten
        monkeypatch.setattr(learner, "write_index", write_slowly)
        saving = pool.submit(store.save_index)
        assert begun.wait(60)
        store.tag([2, 35], "new")
        store.clear([3, 31], ["all", "up", "down"])
        assert "new" in [found.tag for found in store.suggest(40)]
        if other_method:
            store.set_method({"name": "BRkNN"})
        found = answers(store)
        go_on.set()
        saving.result(60)
        assert answers(store) == found
        assert store.verify()
        assert len(indexes(folder)) == (0 if other_method else 1)
    with Collection(folder, readonly=True) as store:
        assert answers(store) == found
        assert store.notes == []


def test_removed_rows_leave_memory_when_a_file_is_written(folder: Path) -> None:
    with Collection(folder) as store:
        store.tag(31, "all")
        store.suggest(35)
        before = weakref.ref(store._folder.learned._learner)
        store.clear(1, ["all", "up", "down"])
        store.save_index()
        assert before() is None
        assert len(store._folder.learned._learner) == 30


def test_items_with_a_tag_do_not_depend_on_the_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collection(folder, readonly=True) as store:
        asked = (1, 7, 35, [1, 0, -1, 0, 2])
        before = [store.retrieve(query, 3, 9) for query in asked]
        assert all(len(group.items) == 9 for groups in before for group in groups)
        monkeypatch.setattr(retrieval, "_FEW_CELLS", 1)
        for most in (1, 12, 40):
            monkeypatch.setattr(retrieval, "_MANY_NEAR", most)
            assert [store.retrieve(query, 3, 9) for query in asked] == before
