"""Stored results: complete or missing."""

import os

import numpy as np
import pytest

from nearlabel.common.files import write_tree
from nearlabel.experiments.result_store import ResultStore, digest_of

RUN = {"runs": [{"parameters": {"n_neighbors": 3}, "metrics": {"one_error": [0.25, None]}}]}


def file_of(store, key):
    return store.path / f"{key}.run"


def test_results_are_stored(tmp_path):
    store = ResultStore("runs", tmp_path / "new")
    assert store.get("a") is None
    assert not store.path.exists()  # nothing is written without a result
    store.add("a", RUN)
    store.add("b", {**RUN, "scores": np.array([1.5, 2.5])})
    again = ResultStore("runs", tmp_path / "new")
    assert again.get("a") == RUN
    assert again.get("b")["scores"].tolist() == [1.5, 2.5]
    again.add("c", RUN)
    assert sorted(path.name for path in again.path.iterdir()) == ["a.run", "b.run", "c.run"]


def test_a_newer_result_replaces_only_itself(tmp_path):
    store = ResultStore("runs", tmp_path)
    store.add("a", RUN)
    store.add("b", RUN)
    newer = {**RUN, "seconds": 2.5}
    store.add("a", newer)
    assert (store.get("a"), store.get("b")) == (newer, RUN)


def test_an_interrupt_leaves_what_was_there(tmp_path, monkeypatch):
    store = ResultStore("runs", tmp_path)
    store.add("a", RUN)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    for key in "ab":
        with pytest.raises(KeyboardInterrupt):
            store.add(key, {})
    assert (store.get("a"), store.get("b")) == (RUN, None)
    assert [path.name for path in store.path.iterdir()] == ["a.run"]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: b"nonsense",
        lambda content: content.replace(b"0.25", b"0.35"),
        lambda content: content.replace(b"null", b"NaN "),
    ],
)
def test_a_file_that_was_changed_counts_as_missing(tmp_path, change):
    store = ResultStore("runs", tmp_path)
    for key in "abc":
        store.add(key, RUN)
    before = file_of(store, "b").read_bytes()
    file_of(store, "b").write_bytes(change(before))
    assert file_of(store, "b").read_bytes() != before
    assert [store.get(key) for key in "abc"] == [RUN, None, RUN]
    store.add("b", RUN)
    assert store.get("b") == RUN


def test_a_file_under_another_key_counts_as_missing(tmp_path):
    store = ResultStore("runs", tmp_path)
    store.add("a", RUN)
    file_of(store, "a").rename(file_of(store, "b"))
    assert (store.get("a"), store.get("b")) == (None, None)


def test_files_of_1_0_0_have_no_key(tmp_path):
    store = ResultStore("others", tmp_path)
    store.path.mkdir()
    write_tree(file_of(store, "a"), RUN)
    assert store.get("a") == RUN


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "runs").write_text("something else")
    for name, parent in (("runs", tmp_path), ("more", tmp_path / "runs")):
        with pytest.raises(ValueError, match=r"results.*runs is a file"):
            ResultStore(name, parent)


def test_a_digest_changes_with_the_settings_and_not_with_their_order():
    digests = {digest_of([{"scale": scale}, data]) for scale in ("none", "minmax") for data in "ab"}
    assert len(digests) == 4
    assert digest_of([{"a": 1, "b": 2}, "x"]) == digest_of([{"b": 2, "a": 1}, "x"])
