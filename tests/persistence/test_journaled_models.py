"""Models with a journal: loading applies its changes, saving empties it."""

import copy
import re
from contextlib import closing

import pytest
from sklearn.preprocessing import StandardScaler

import nearlabel as nl
from nearlabel.common.files import FileError
from nearlabel.common.journal import Journal, journal_path
from nearlabel.persistence import models


@pytest.fixture
def made():
    return nl.datasets.make_local_labels(40, 3, 5)


@pytest.fixture(autouse=True)
def replayed(monkeypatch):
    """Records the replayed changes without applying them."""
    changes = []

    def replay(_, change):
        if "wrong" in change:
            raise KeyError(change["wrong"])
        changes.append(change["number"])

    monkeypatch.setattr(nl.MLkNN, "_replay", replay, raising=False)
    return changes


@pytest.fixture(params=["model", "pipeline"])
def path(request, tmp_path, made):
    model = nl.MLkNN(n_neighbors=3)
    if request.param == "pipeline":
        model = nl.make_pipeline(StandardScaler(), model)
    path = tmp_path / "file.model"
    nl.save(model.fit(made.X, made.Y), path)
    return path


def learner(model):
    return model[-1] if isinstance(model, nl.Pipeline) else model


@pytest.mark.parametrize("is_mapped", [False, True])
def test_changes_are_made_again(path, replayed, is_mapped):
    assert learner(nl.load(path, mmap=is_mapped)).__dict__.get("_journal") is None
    assert not journal_path(path).exists()
    for number in range(3):
        model = nl.load(path, mmap=is_mapped, journal=True)
        assert replayed == list(range(number))
        learner(model)._journal.append({"number": number})
        with pytest.raises(BlockingIOError, match=re.escape(f"{path}.journal")):
            nl.load(path, journal=True)
        replayed.clear()
        nl.load(path, mmap=is_mapped)
        assert replayed == list(range(number + 1))
        replayed.clear()
        assert getattr(learner(copy.deepcopy(model)), "_journal", None) is None
        del model  # and others may write


def test_another_model_replaces_one_with_a_journal(path, replayed, made):
    model = nl.load(path, journal=True)
    learner(model)._journal.append({"number": 0})
    other = nl.BRkNN(n_neighbors=3).fit(made.X, made.Y)
    with pytest.raises(BlockingIOError, match="journal=True.*still open"):
        other.save(path)
    learner(model)._journal.close()
    other.save(path)
    assert isinstance(nl.load(path), nl.BRkNN)
    assert replayed == []
    assert not journal_path(path).exists()


def test_invalid_changes(path):
    model = nl.load(path, journal=True)
    learner(model)._journal.append({"number": 0}, {"wrong": "place"})
    del model
    for journal in (False, True):
        with pytest.raises(FileError, match=f"{re.escape(str(path))}.journal .*change 1.*'place'"):
            nl.load(path, journal=journal)


def test_models_that_cannot_change_have_no_journal(tmp_path, made):
    path = tmp_path / "graph"
    nl.neighbor_graph(made.X, 3).save(path)
    with pytest.raises(FileError, match="NeighborGraph cannot be changed"):
        nl.load(path, journal=True)
    assert not journal_path(path).exists()
    journal, _ = Journal.create_or_open(path, models.stored_digest(path))
    with closing(journal):
        journal.append({"number": 0})
    with pytest.raises(FileError, match=r"graph\.journal .*NeighborGraph cannot be changed"):
        nl.load(path)


@pytest.mark.parametrize("journal", [False, True])
def test_a_file_that_is_saved_anew_while_it_is_loaded(path, replayed, monkeypatch, journal):
    """A writer empties the journal after the file was read, and continues."""
    writer = nl.load(path, journal=True)
    learner(writer)._journal.append({"number": 0})
    take_up = models._take_up_changes

    def take_up_after_all_has_changed(*args):
        monkeypatch.undo()
        monkeypatch.setattr(nl.MLkNN, "_replay", lambda _, c: replayed.append(c["number"]), False)
        nl.save(writer, path)
        learner(writer)._journal.append({"number": 1})
        if journal:
            learner(writer)._journal.close()
        take_up(*args)

    monkeypatch.setattr(models, "_take_up_changes", take_up_after_all_has_changed)
    model = nl.load(path, journal=journal)
    assert replayed == [1]
    assert (getattr(learner(model), "_journal", None) is not None) == journal


def test_an_empty_journal_is_removed_on_close(path, replayed):
    with nl.load(path, journal=True) as model:
        assert journal_path(path).exists()
        with pytest.raises(BlockingIOError):
            nl.load(path, journal=True)
    assert not journal_path(path).exists()
    with nl.load(path, journal=True) as model:
        learner(model)._journal.append({"number": 7})
    with nl.load(path, journal=True):
        assert replayed == [7]
    with nl.load(path, journal=True) as model:
        nl.save(model, path)
    assert not journal_path(path).exists()
