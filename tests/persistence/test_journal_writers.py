"""Who may write to the journal of a model, and what remains of an interrupted change."""

import copy
import os
import sys
from contextlib import suppress

import numpy as np
import pytest
from forking import ends_well_in_a_fork
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.common import journal as journals
from nearlabel.common.files import FileError


@pytest.fixture
def made():
    return nl.datasets.make_local_labels(40, 3, 5)


@pytest.fixture
def path(tmp_path, made):
    path = tmp_path / "file.model"
    nl.MLkNN(3).fit(made.X, made.Y).save(path)
    return path


def test_a_shallow_copy_has_no_journal(path):
    model = nl.load(path, journal=True)
    other = copy.copy(model).forget(3)
    model.forget(3)
    assert other.verify()
    assert nl.load(path).history_ == model.history_


@pytest.mark.parametrize("is_pipeline", [False, True])
def test_a_closed_model_predicts_and_accepts_no_changes(path, made, is_pipeline):
    if is_pipeline:
        nl.save(nl.make_pipeline(MinMaxScaler(), nl.MLkNN(3)).fit(made.X, made.Y), path)
    with nl.load(path, journal=True) as model:
        model.forget(0)
        with pytest.raises(BlockingIOError, match="journal=True.*still open"):
            nl.load(path, journal=True)
    model.close()  # again
    with nl.load(path, journal=True) as other:
        other.forget(1)
    files = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    for change in (
        lambda: model.partial_fit(made.X[:1], made.Y[:1]),
        lambda: model.forget(2),
        lambda: model.relabel(2, made.Y[:1]),
        model.compact,
        model.refresh,
        lambda: model.fit(made.X, made.Y),
    ):
        with pytest.raises(FileError, match=r"journal is closed.*load the model again"):
            change()
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == files
    assert model.ids_.tolist() == [*range(1, 40)]
    assert model.predict(made.X[:2]).shape == (2, 5)
    assert model.verify()
    assert nl.load(path).ids_.tolist() == [*range(2, 40)]


def test_closing_allows_other_writers_also_after_an_error(path):
    with pytest.raises(ZeroDivisionError), nl.load(path, journal=True):
        raise ZeroDivisionError
    assert not journals.journal_path(path).exists()
    nl.load(path, journal=True).close()
    with nl.load(path) as model:  # has none to close
        pass
    model.close()
    assert len(model.forget(3).search_with("exact").ids_) == 39
    with nl.load(path, journal=True) as model:
        pass
    model.search_with("exact")  # no file has that


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_writes_nothing(path):
    model = nl.load(path, journal=True).forget(0)

    def in_child():
        with pytest.raises(FileError, match="is closed"):
            model.forget(5)
        with pytest.raises(BlockingIOError):
            model.save(path)

    assert ends_well_in_a_fork(in_child)
    model.forget(6)
    assert nl.load(path).ids_.tolist() == model.ids_.tolist()


@pytest.mark.filterwarnings("ignore:a function as metric")
def test_a_new_fit_is_in_the_file(path, made):
    model = nl.load(path, journal=True).forget(1)
    model.fit(made.X[:20], made.Y[:20]).partial_fit(made.X[20:21], made.Y[20:21])
    assert nl.load(path).ids_.tolist() == list(range(21))
    model.set_params(metric=lambda a, b: float(np.abs(a - b).sum()))
    with pytest.raises(TypeError, match="cannot be saved"):
        model.fit(made.X, made.Y)
    assert model.forget(2).ids_.tolist() == nl.load(path).ids_.tolist()


@pytest.mark.parametrize("change", ["partial_fit", "forget", "relabel", "compact"])
def test_an_interrupt_at_any_line(path, made, change):
    changes = {
        "partial_fit": lambda model: model.partial_fit(made.X[:1], made.Y[:1], ids=[100]),
        "forget": lambda model: model.forget([5, 6]),
        "relabel": lambda model: model.relabel([5], made.Y[[6]]),
        "compact": lambda model: model.compact(),
    }

    interrupted, number, before = True, 0, path.read_bytes()
    while interrupted:
        number += 1
        model = nl.load(path, journal=True)
        left = [number]

        def trace(frame, event, _, left=left):
            code = frame.f_code
            if not (code.co_filename.endswith("journal.py") or code.co_name == "_become"):
                return None
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            changes[change](model)
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert are_alike(nl.load(path), model)
        with suppress(OSError):  # must be loaded again: nothing was acknowledged
            model.forget(20)
        assert are_alike(nl.load(path), model)
        vars(model)["_journal"].close()
        path.write_bytes(before)
        journals.journal_path(path).unlink()


def are_alike(one, other):
    rows, others = one.items_, other.items_
    labels = rows.labels[rows.places] != others.labels[others.places]
    return one.ids_.tolist() == other.ids_.tolist() and labels.nnz == 0


def test_a_file_that_was_replaced_has_a_journal_of_its_own(path, monkeypatch):
    """Changes are refused after an error between the new file and its new journal."""
    model = nl.load(path, journal=True).forget(1)
    written = journals.write_tree

    def interrupted(*args):
        written(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(journals, "write_tree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.compact()
    monkeypatch.undo()
    with pytest.raises(OSError, match="load the model again"):
        model.forget(2)
    assert nl.load(path).ids_.tolist() == model.ids_.tolist()


@pytest.mark.parametrize("ids", [[3], [3, 4, 5], 3])
def test_other_labels_of_more_or_fewer_rows_than_named(path, made, ids):
    model = nl.load(path, journal=True).relabel([3, 4], made.Y[:2])
    (record,) = model._journal.records()
    model.save(path)
    model._journal.append({**record, "ids": ids})
    with pytest.raises(FileError, match="cannot be applied"):
        nl.load(path)
