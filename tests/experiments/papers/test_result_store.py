"""Stored results: complete or missing, and for one state of the code."""

from __future__ import annotations

import os

import pytest
from lookalikes import write_lookalikes

from nearlabel.experiments.papers import result_store
from nearlabel.experiments.papers.result_store import ResultStore, code_key, data_key, result_key

RUN = {"runs": [{"parameters": {"n_neighbors": 3}, "metrics": {"one_error": [0.25, None]}}]}


def file_of(store, key):
    return store.path / f"{key}.json"


def test_results_are_stored(tmp_path):
    store = ResultStore(tmp_path / "new" / "folder")
    assert store.get("a") is None
    assert not store.path.exists()  # nothing is written without a result
    store.add("a", RUN)
    store.add("b", {**RUN, "seconds": 1.5})
    again = ResultStore(tmp_path / "new" / "folder")
    assert again.get("a") == RUN
    assert again.get("b")["seconds"] == 1.5
    again.add("c", RUN)
    assert sorted(path.name for path in again.path.iterdir()) == ["a.json", "b.json", "c.json"]


def test_a_newer_result_replaces_only_itself(tmp_path):
    store = ResultStore(tmp_path)
    store.add("a", RUN)
    store.add("b", RUN)
    newer = {**RUN, "seconds": 2.5}
    store.add("a", newer)
    after = ResultStore(tmp_path)
    assert (after.get("a"), after.get("b")) == (newer, RUN)


def test_an_interrupt_leaves_what_was_there(tmp_path, monkeypatch):
    store = ResultStore(tmp_path)
    store.add("a", RUN)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    for key in "ab":
        with pytest.raises(KeyboardInterrupt):
            store.add(key, {})
    assert (store.get("a"), store.get("b")) == (RUN, None)
    assert [path.name for path in store.path.iterdir()] == ["a.json"]


def test_two_at_once_lose_nothing(tmp_path):
    one, other = ResultStore(tmp_path), ResultStore(tmp_path)
    one.add("a", RUN)
    other.add("b", RUN)
    one.add("c", RUN)
    assert all(ResultStore(tmp_path).get(key) == RUN for key in "abc")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"",
        lambda text: text[:10],
        lambda text: text[:-1],
        lambda text: b"nonsense",
        lambda text: b"[1, 2]",
        lambda text: b"[" * 5000,
        lambda text: b"\xff\xfe",
        lambda text: b'{"digest": "b"}',
        lambda text: text.replace(b'"result": {', b'"result": [{').replace(b"}}", b"}]}"),
        lambda text: text.replace(b"0.25", b"0.35"),
        lambda text: text.replace(b"null", b"NaN"),
        lambda text: text.replace(b'"digest"', b'"digits"'),
    ],
)
def test_a_file_that_was_changed_counts_as_not_measured(tmp_path, change):
    store = ResultStore(tmp_path)
    for key in "abc":
        store.add(key, RUN)
    before = file_of(store, "b").read_bytes()
    file_of(store, "b").write_bytes(change(before))
    assert file_of(store, "b").read_bytes() != before
    again = ResultStore(tmp_path)
    assert [again.get(key) for key in "abc"] == [RUN, None, RUN]
    again.add("b", RUN)
    assert again.get("b") == RUN


def test_a_file_under_another_key_counts_as_not_measured(tmp_path):
    store = ResultStore(tmp_path)
    store.add("a", RUN)
    file_of(store, "a").rename(file_of(store, "b"))
    assert (store.get("a"), store.get("b")) == (None, None)


def test_results_of_earlier_versions_are_neither_read_nor_removed(tmp_path):
    """They were lines of one file, named by the code as the folder is now."""
    earlier = tmp_path / f"reproduction-{code_key()[:16]}.jsonl"
    earlier.write_text('{"code": "x"}\n{"key": "a", "digest": "y", "result": {}}\n')
    store = ResultStore(tmp_path)
    assert store.get("a") is None
    store.add("a", RUN)
    assert earlier.exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    path = ResultStore(tmp_path).path
    path.write_text("something else")
    with pytest.raises(ValueError, match=f"results.*{path.name}"):
        ResultStore(tmp_path)
    with pytest.raises(ValueError, match=f"results.*{path.name}"):
        ResultStore(path)


def test_other_code_has_another_folder(tmp_path, monkeypatch):
    store = ResultStore(tmp_path)
    store.add("a", RUN)
    code_key.cache_clear()
    monkeypatch.setattr(result_store, "package_versions", lambda: {"numpy": "0.0"})
    other = ResultStore(tmp_path)
    assert other.path != store.path
    assert other.get("a") is None
    monkeypatch.undo()
    code_key.cache_clear()
    assert ResultStore(tmp_path).get("a") is not None


def test_the_code_is_all_that_computes(tmp_path, monkeypatch):
    """A changed source is different code, unless it only prints."""
    keys = []
    sources = ("methods.py", "cli/compare.py", "experiments/reporting/figures.py")
    for changed in (None, *sources):
        package = tmp_path / str(changed).replace("/", "-")
        for name in sources:
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("changed" if name == changed else "as it was")
        monkeypatch.setattr(result_store, "_PACKAGE", package)
        code_key.cache_clear()
        keys.append(code_key())
    monkeypatch.undo()
    code_key.cache_clear()
    assert keys[0] == keys[2] == keys[3] != keys[1]


def test_a_key_changes_with_data_and_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert data_key("yeast") is None
    write_lookalikes(tmp_path, "emotions", "yeast")
    assert data_key("yeast") == data_key("yeast") != data_key("emotions")
    (tmp_path / "yeast.npz").write_bytes((tmp_path / "emotions.npz").read_bytes())
    before = data_key("yeast")
    (tmp_path / "scene-train.arff").write_text("train")
    (tmp_path / "scene-test.arff").write_text("test")
    scene = data_key("scene")
    (tmp_path / "scene.xml").write_text("labels")
    assert data_key("scene") != scene
    assert data_key("yeast") == before
    keys = {result_key({"scale": scale}, data) for scale in ("none", "minmax") for data in "ab"}
    assert len(keys) == 4
    assert result_key({"a": 1, "b": 2}, "x") == result_key({"b": 2, "a": 1}, "x")


SPARSE = ("Bibtex.labels.txt", "bibtex.features.txt", "bibtex.split.txt", "bibtex_trSplit.txt")


@pytest.mark.parametrize(
    ("name", "file", "beside"),
    [
        *(("bibtex", "bibtex.txt", one) for one in SPARSE),
        ("scene", "scene.arff", "scene.xml.gz"),
        ("scene", "scene_train.arff", "scene_test.arff"),
    ],
)
def test_a_key_changes_with_other_inputs(tmp_path, monkeypatch, name, file, beside):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    (tmp_path / file).write_text("1 1 1\n0 0:1\n")
    (tmp_path / beside).write_text("as it was")
    before = data_key(name)
    assert before is not None
    (tmp_path / f"{name}2.txt").write_text("another data set")
    assert data_key(name) == before
    (tmp_path / beside).write_text("changed")
    assert data_key(name) != before


def test_a_key_does_not_change_with_unused_inputs(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    write_lookalikes(tmp_path, "mediamill")
    before = data_key("mediamill")
    write_lookalikes(tmp_path, "mediamill_sample")
    assert data_key("mediamill") == before
