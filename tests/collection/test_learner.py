"""The learner compared with new fits of the same content."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_store import WIDTH, Store, answers, chosen, filled

from nearlabel import MallowskNN, MLkNN
from nearlabel.collection.learner import Learner, label_rows
from nearlabel.common.files import FileError


def opened(store: Store, folder: Path, **method: Any) -> Learner:
    learner = Learner(folder, chosen(**method), store)
    assert learner.opened(None) == []
    return learner


def same_answers(learner: Learner, store: Store, folder: Path, **method: Any) -> None:
    """Check that all answers equal those of a new learner, bit for bit."""
    fresh = opened(store, folder, **method)
    assert len(learner) == len(fresh)
    now, expected = answers(learner), answers(fresh)
    for item in [*store.values][:: max(1, len(store.values) // 4)]:
        without = [item % 5]
        assert now.suggest(item, 4, without=without) == expected.suggest(item, 4, without=without)
        assert now.retrieve(item, 3, 4) == expected.retrieve(item, 3, 4)
    assert now.suggest(np.ones(WIDTH)) == expected.suggest(np.ones(WIDTH))


@pytest.mark.parametrize(
    ("method", "is_sparse"),
    [
        ({}, False),
        ({"n_neighbors": 3, "smoothing": 0.5}, True),
        ({"name": "BRkNN", "weights": "distance"}, False),
        ({"name": "MallowskNN"}, True),
        ({"name": "MLCWkNN", "metric": "euclidean"}, False),
    ],
)
def test_changes_equal_a_new_fit(tmp_path: Path, method: Any, is_sparse: bool) -> None:
    random, store = np.random.default_rng(1), filled(24, is_sparse=is_sparse)
    learner = opened(store, tmp_path, **method)
    digest, saved, since = learner.save(1), 1, set()
    for step in range(2, 17):
        touched = random.integers(1, 30, random.integers(1, 4)).tolist()
        for item in touched:
            what = random.integers(5)
            if item not in store.values or what == 0:
                store.put(item, random.integers(0, 3, WIDTH))
            elif what == 1:
                store.decide(item, None)
            elif what == 2:
                store.drop(item)
            else:
                store.decide(item, random.permutation(12)[: random.integers(0, 4)].tolist())
        since.update(touched)
        if step % 4:
            learner.follow(touched)
        else:  # as a new process would load it
            learner = Learner(tmp_path, chosen(**method), store)
            assert learner.opened(saved, digest) == []
            learner.follow(since)
        if step % 7 == 0:
            digest, saved, since = learner.save(step), step, set()
        if step % 6 == 0:
            learner.compact()
        if step % 5 == 0:
            same_answers(learner, store, tmp_path, **method)
    same_answers(learner, store, tmp_path, **method)
    assert learner.verify()


def test_the_number_of_neighbors_grows_with_the_rows(tmp_path: Path) -> None:
    store, x = Store(), np.ones(WIDTH)
    learner, found = opened(store, tmp_path), {}
    for item in range(1, 161):
        store.put(item, np.random.default_rng(item).integers(1, 9, WIDTH))
        store.decide(item, [item % 3])
        learner.follow([item])
        if item in (2, 14, 15, 59, 60, 149, 150, 160):
            k = found[item] = learner._model.n_neighbors_
            rows, method = store.rows(), MLkNN if item >= 15 else MallowskNN
            model = method(k, metric="cosine").fit(
                store.vectors(rows.ids.tolist()), label_rows(rows, 1), ids=rows.learned
            )
            told = {one.tag: one.probability for one in answers(learner).suggest(x)}
            expected = model.predict_proba(x[None])[0].tolist()
            assert told == {tag: expected[tag] for tag in {*rows.tags.tolist()}}
    assert found == {2: 1, 14: 1, 15: 1, 59: 3, 60: 4, 149: 9, 150: 10, 160: 10}
    digest = learner.save(1)
    again = Learner(tmp_path, chosen(), store)
    assert again.opened(1, digest) == []
    for item in range(61, 161):
        store.decide(item, None)
    for one in (learner, again):
        one.follow(range(61, 161))
        assert one._model.n_neighbors_ == 4
        same_answers(one, store, tmp_path)


def test_ties_are_in_the_order_of_tags_whatever_came_first(tmp_path: Path) -> None:
    store = Store()
    for item in range(1, 5):
        store.put(item, [item, 1, 0, 0])
        store.decide(item, [9])
    learner = opened(store, tmp_path, n_neighbors=3)
    for item in (3, 4):
        store.decide(item, [])
    for item in (1, 2):
        store.decide(item, [9, 7])
    learner.follow(store.values)
    found = answers(learner).suggest([1, 0.3, 0, 0])
    assert [one.tag for one in found] == [7, 9]
    assert found[0].probability == found[1].probability


def test_what_is_left_out_of_suggestions(tmp_path: Path) -> None:
    store = Store()
    for item in range(1, 6):
        store.put(item, [item, 1, 0, 0])
        store.decide(item, [1, 10 + item])
    store.decide(5, [1])
    now = answers(opened(store, tmp_path))
    assert sorted(one.tag for one in now.suggest(np.ones(WIDTH))) == [1, 11, 12, 13, 14]
    assert [one.tag for one in now.suggest(2)] == [1, 13, 11, 14]  # 12: only itself
    assert [one.tag for one in now.suggest(2, without=[1, 13, 99])] == [11, 14]
    assert [one.tag for one in now.suggest(2, 2, without=[1])] == [13, 11]
    assert [group.tag for group in now.retrieve(2, without=[1])] == [13, 11, 14]
    assert all(voter.id != 2 for one in now.suggest(2) for voter in one.voters)
    assert all(item != 2 for group in now.retrieve(2) for item, _ in group.items)


def test_a_row_is_answered_as_if_it_were_new(tmp_path: Path) -> None:
    store, random = filled(120), np.random.default_rng(0)
    for item in store.values:
        store.values[item] = random.normal(size=WIDTH).astype(np.float32)  # without ties
    learner = opened(store, tmp_path, n_neighbors=4)
    item = next(iter(store.order))
    others = [one for one in store.order if one != item]
    distances = {
        one: 1 - store.values[one] @ store.values[item] / lengths
        for one in others
        if (lengths := np.linalg.norm(store.values[one]) * np.linalg.norm(store.values[item]))
    }
    nearest = sorted(distances, key=lambda one: (round(distances[one], 6), store.order[one]))[:4]
    for suggestion in answers(learner).suggest(item, 20):
        carriers = [one for one in nearest if suggestion.tag in store.tags[one]]
        assert [voter.id for voter in suggestion.voters] == carriers


def test_a_suggestion_shows_what_each_voter_adds(tmp_path: Path) -> None:
    store = filled(30)
    learner = opened(store, tmp_path, n_neighbors=5)
    suggestion = next(one for one in answers(learner).suggest(np.ones(WIDTH)) if one.voters)
    voter = suggestion.voters[0]
    expected = learner.state.model.explain(np.ones(WIDTH), labels=[suggestion.tag])[0]  # type: ignore[union-attr]
    assert suggestion.probability == expected.score
    assert (voter.distance, voter.part) == (
        expected.neighbors[0].distance,
        expected.neighbors[0].part,
    )


def test_there_are_no_suggestions_with_fewer_than_two_rows(tmp_path: Path) -> None:
    store = Store()
    learner = opened(store, tmp_path)
    for item in (1, 2, 3):
        store.put(item, [item, 1, 0, 0])
    assert answers(learner).suggest(1) == answers(learner).retrieve(1) == []
    store.decide(1, [1])
    learner.follow([1])
    assert len(learner) == 0
    assert answers(learner).suggest(2) == []
    assert learner.save(4) is None
    store.decide(2, [1])
    learner.follow([2])
    assert [one.tag for one in answers(learner).suggest(3)] == [1]
    assert learner.save(5) is not None
    store.decide(1, None)
    learner.follow([1])
    assert (len(learner), answers(learner).suggest(3), learner.save(6)) == (0, [], None)


def test_only_a_no_makes_an_item_an_example_without_tags(tmp_path: Path) -> None:
    store = filled(12)
    learner = opened(store, tmp_path, name="BRkNN")
    before = answers(learner).suggest(np.ones(WIDTH), 3)
    untagged = next(item for item in store.values if item not in store.order)
    store.values[untagged] = np.ones(WIDTH, np.float32)
    store.decide(untagged, [])
    learner.follow([untagged])
    after = {one.tag: one.probability for one in answers(learner).suggest(np.ones(WIDTH), 20)}
    assert all(after[one.tag] <= one.probability for one in before)
    assert any(after[one.tag] < one.probability for one in before)


@pytest.mark.parametrize("damage", ["gone", "cut", "bit", "link", "other", "folder"])
def test_a_damaged_index_is_rebuilt_and_reported(tmp_path: Path, damage: str) -> None:
    store = filled(20)
    digest = opened(store, tmp_path).save(3)
    path = tmp_path / "index-3.model"
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:-64])
    elif damage == "bit":
        at = len(content) // 2
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "other":
        store.decide(1, [5])
        opened(store, tmp_path).save(3)
    elif damage == "folder":
        path.mkdir()
    learner = Learner(tmp_path, chosen(), store)
    (note,) = learner.opened(3, digest)
    assert "index-3.model" in note
    assert "learned again from all items" in note
    same_answers(learner, store, tmp_path)


def test_an_index_of_a_different_method_is_not_used(tmp_path: Path) -> None:
    store = filled(90)
    digest = opened(store, tmp_path).save(3)
    for method in ({"name": "BRkNN"}, {"n_neighbors": 2}, {"smoothing": 2.0}):
        learner = Learner(tmp_path, chosen(**method), store)
        assert len(learner.opened(3, digest)) == 1
        same_answers(learner, store, tmp_path, **method)


def test_an_index_holds_no_vectors(tmp_path: Path) -> None:
    store = filled(200)
    opened(store, tmp_path).save(1)
    content = (tmp_path / "index-1.model").read_bytes()
    rows = store.vectors([item for item in store.order if store.values[item].all()])
    assert len(rows) > 5
    assert not any(row.tobytes() in content for row in rows)


def test_a_failed_change_is_made_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(40)
    learner = opened(store, tmp_path)
    before = answers(learner).suggest(np.ones(WIDTH))
    gone, new = next(iter(store.order)), 50
    store.put(new, [1, 1, 1, 1])
    store.decide(new, [3, 4])
    store.drop(gone)
    with monkeypatch.context() as patched:
        patched.setattr(MLkNN, "forget", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.follow([gone, new])
    assert answers(learner).suggest(np.ones(WIDTH)) == before  # no reader sees half of it
    learner.follow([])
    same_answers(learner, store, tmp_path)


def test_replayed_states_of_an_item_do_not_count(tmp_path: Path) -> None:
    """An item that was cleared and decided again comes after those decided meanwhile."""
    store = filled(20)
    learner = opened(store, tmp_path)
    digest = learner.save(1)
    first, second = [*store.order][:2]
    for item in (first, second):
        store.decide(item, None)
    store.decide(second, [1, 2])
    store.put(40, [1, 2, 1, 0])
    store.decide(40, [1])
    store.decide(first, [2])
    store.drop(second)
    store.put(second, [2, 2, 1, 0])
    store.decide(second, [6])
    again = Learner(tmp_path, chosen(), store)
    assert again.opened(1, digest) == []
    again.follow([first, second, 40])
    same_answers(again, store, tmp_path)


def test_it_reports_when_a_new_file_is_worthwhile(tmp_path: Path) -> None:
    store = filled(300)
    learner = opened(store, tmp_path)
    learner.save(0)
    learner.saved(learner)
    assert not learner.is_worth_saving(closing=True)
    for item in range(100, 800):
        store.put(item, np.random.default_rng(item).integers(0, 3, WIDTH))
        store.decide(item, [item % 9])
    learner.follow(range(100, 180))
    assert learner.is_worth_saving(closing=True)
    assert not learner.is_worth_saving()
    learner.follow(range(180, 800))
    assert learner.is_worth_saving()
    still = learner.at_rest()
    learner.follow(range(100, 110))
    still.save(1)
    learner.saved(still)
    assert learner.unsaved == 10
    assert not learner.is_worth_saving(closing=True)


def test_queries_during_changes(tmp_path: Path) -> None:
    store = filled(60)
    learner = opened(store, tmp_path)
    seen: list[Any] = [answers(learner).suggest(np.ones(WIDTH))]
    told, done = [], threading.Event()

    def ask() -> None:
        while not done.is_set():
            told.append(answers(learner).suggest(np.ones(WIDTH)))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for item in range(100, 140):
        store.put(item, [1, 1, 1, item % 3])
        store.decide(item, [item % 5])
        learner.follow([item])
        seen.append(answers(learner).suggest(np.ones(WIDTH)))
    done.set()
    for thread in threads:
        thread.join()
    assert told
    assert all(one in seen for one in told)


def test_verify_compares_with_the_store(tmp_path: Path) -> None:
    store = filled(30)
    learner = opened(store, tmp_path)
    assert learner.verify()
    assert "30" not in str(learner.verify())  # rows are fewer than items
    store.decide(next(iter(store.order)), [11])
    assert "tags" in str(learner.verify())
    assert not learner.verify()
    learner.follow(store.values)
    assert learner.verify()
    item = next(iter(store.order))
    store.values[item] = store.values[item] + 1
    assert "vectors" in str(learner.verify())
    store.drop(item)
    assert "items" in str(learner.verify())


@pytest.mark.parametrize("method", [{"name": "IBLR"}, {"name": "MLkNN", "k": 3}, {"smoothing": -1}])
def test_invalid_methods(tmp_path: Path, method: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="method|smoothing|'k'"):
        Learner(tmp_path, chosen(**method), Store())


def test_a_store_that_breaks_the_order_is_learned_again(tmp_path: Path) -> None:
    store = filled(20)
    learner = opened(store, tmp_path)
    untagged = next(item for item in store.values if item not in store.order)
    store.decide(untagged, [1])
    store.order[untagged] = 0  # before all others
    learner.follow([untagged])
    same_answers(learner, store, tmp_path)


@pytest.mark.parametrize("tag", [-1, 2**24])
def test_invalid_numbers_of_tags(tmp_path: Path, tag: int) -> None:
    store = filled(20)
    store.decide(1, [tag])
    with pytest.raises(FileError, match="tag numbers"):
        opened(store, tmp_path)
