"""add, forget and relabel: models of files that change."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.cli.process import OUR_ERROR
from nearlabel.methods.verification import Verification

HEAD = "id,tempo,energy,loudness,brightness,speech,acoustic,tags"


@pytest.fixture(scope="module")
def two_parts(songs, tmp_path_factory):
    """A folder with songs in two parts, 90 and 10, and models of the first and of both."""
    folder = tmp_path_factory.mktemp("parts")
    head, *rows = (songs / "songs.csv").read_text().splitlines()
    assert head == HEAD
    for name, some in {"all": rows[:100], "old": rows[:90], "more": rows[90:100]}.items():
        (folder / f"{name}.csv").write_text("\n".join([head, *some, ""]))
    for name in ("all", "old"):
        assert run(["fit", f"{folder}/{name}.csv", "-o", f"{folder}/{name}.model"]) == 0
    shutil.copy(songs / "new.csv", folder)
    return folder


@pytest.fixture
def folder(two_parts, tmp_path, monkeypatch):
    """A copy of it that a test may change."""
    shutil.copytree(two_parts, tmp_path / "parts")
    monkeypatch.chdir(tmp_path / "parts")
    return tmp_path / "parts"


def told(printed):
    return json.loads(printed)


def rows_of(name, *keep):
    """The rows of a table without its header, or only those with given ids."""
    rows = Path(name).read_text().splitlines()[1:]
    return [row for row in rows if not keep or row.split(",")[0] in keep]


def table(name, rows, head=HEAD):
    Path(name).write_text("\n".join([head, *rows, ""]))
    return name


def files():
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def test_items_that_are_added_count_as_if_they_had_been_there(ask, folder):
    before = Path("old.model").read_bytes()
    lines = ask("add", "old.model", "more.csv").splitlines()
    assert lines[0] == "added 10 items: old.model has 100 items and 12 labels now"
    assert lines[1].startswith("wrote old.model.journal (")
    assert len(lines) == 2
    assert Path("old.model").read_bytes() == before
    for verb in (["rank", "--top", 3], ["rank", "--why"], ["predict"]):
        answers = [ask(verb[0], f"{name}.model", "new.csv", *verb[1:]) for name in ("old", "all")]
        assert answers[0] == answers[1]


def test_compact_makes_one_file(ask, folder):
    ask("add", "old.model", "more.csv")
    ranked = ask("rank", "old.model", "new.csv")
    printed = ask("forget", "old.model", "song 095", "--compact", "--verify")
    assert "wrote old.model (" in printed
    assert "without a trace of forgotten items" in " ".join(printed.split())
    assert "verified: " in printed
    assert not Path("old.model.journal").exists()
    model = nl.load("old.model")
    assert "song 095" not in model.ids_
    assert len(model.ids_) == 99
    ask("add", "old.model", table("again.csv", rows_of("more.csv", "song 095")), "--compact")
    assert ask("rank", "old.model", "new.csv") == ranked


def test_nothing_of_a_forgotten_item_is_left_after_compact(ask, folder):
    gone = nl.datasets.load("more.csv").rows(np.array([3]))
    ask("add", "old.model", "more.csv")

    def traces():
        found = b"".join(files()[name] for name in files() if name.startswith("old.model"))
        return gone.X.tobytes() in found, b"song 094" in found

    assert traces() == (True, True)
    printed = ask("forget", "old.model", "song 094")
    assert "old.model still holds what was forgotten" in " ".join(printed.split())
    assert traces() == (True, True)
    assert ask("forget", "old.model", "--compact").startswith("compacted: old.model has 99 items")
    assert traces() == (False, False)


@pytest.mark.parametrize("given", ["words", "file", "standard input"])
def test_forget(ask, folder, monkeypatch, given):
    names = [row.split(",")[0] for row in rows_of("more.csv")]
    Path("gone.txt").write_text("\n".join([*names, "", names[0], ""]), encoding="utf-8")
    content = Path("gone.txt").read_bytes()
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", stream)
    how = {"words": names, "file": ["--ids", "gone.txt"], "standard input": ["--ids", "-"]}[given]
    assert ask("forget", "all.model", *how).startswith("forgot 10 items: all.model has 90 items")
    assert ask("rank", "all.model", "new.csv") == ask("rank", "old.model", "new.csv")


def labels_of(path, *names):
    """The labels of items of a model."""
    model = nl.load(path)
    rows = [model.ids_.tolist().index(name) for name in names]
    return [{*model.label_names_[model._labels[[row]].indices].tolist()} for row in rows]


def test_relabel_by_files(ask, folder):
    before = labels_of("all.model", "song 003", "song 006")
    table("columns.csv", ["7,0,song 005", "8,1,song 004"], "x,label:calm,id")
    ask("relabel", "all.model", "columns.csv")
    assert labels_of("all.model", "song 004", "song 005") == [{"calm"}, set()]
    table("tags.csv", ["song 005,", "song 004,epic;gloomy"], "id,tags")
    lines = ask("relabel", "all.model", "tags.csv", "--verify").splitlines()
    assert lines[0] == "relabelled 2 items: all.model has 100 items and 13 labels now"
    assert lines[1] == "new label: gloomy"
    assert "all agree" in " ".join(lines)
    assert labels_of("all.model", "song 004", "song 005") == [{"epic", "gloomy"}, set()]
    Path("one.jsonl").write_text('{"name": "song 004", "labels": []}\n')
    ask("relabel", "all.model", "one.jsonl", "--id", "name")
    assert labels_of("all.model", "song 004") == [set()]
    assert labels_of("all.model", "song 003", "song 006") == before
    ask("relabel", "all.model", "all.csv", "--compact")  # its features are ignored
    fresh = nl.datasets.load("all.csv")
    names = nl.load("all.model").label_names_
    assert names[:-1].tolist() == fresh.label_names.tolist()
    rows = [{*fresh.label_names[fresh.Y[[row]].indices].tolist()} for row in range(100)]
    assert labels_of("all.model", *fresh.row_names.tolist()) == rows


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["calm", "sad"], {"calm", "sad"}),
        (["calm; gloomy"], {"calm", "gloomy"}),
        (["calm|gloomy"], {"calm", "gloomy"}),
        (["calm,sad"], {"calm", "sad"}),
        (["calm, sad;gloomy"], {"calm, sad", "gloomy"}),
        (["calm/sad, slow", "--separator", "/"], {"calm", "sad, slow"}),
        (["calm", "calm"], {"calm"}),
        ([""], set()),
    ],
)
def test_relabel_by_hand(ask, folder, words, labels):
    printed = ask("relabel", "all.model", "--item", "song 004", "song 005", "--to", *words)
    assert printed.startswith("relabelled 2 items")
    assert labels_of("all.model", "song 004", "song 005") == [labels] * 2


def test_single_labels_are_added_and_removed(ask, fail, folder):
    ask("relabel", "all.model", "--item", "song 004", "--to", "calm", "sad")
    ask("relabel", "all.model", "--item", "song 005", "--to", "")
    others = labels_of("all.model", "song 003", "song 006")
    both = ("--item", "song 004", "song 005")
    printed = ask("relabel", "all.model", *both, "--add", "calm", "epic;odd", "--remove", "sad")
    assert printed.startswith("relabelled 2 items: all.model has 100 items and 13 labels now")
    assert "new label: odd" in printed
    assert labels_of("all.model", "song 004", "song 005") == [{"calm", "epic", "odd"}] * 2
    ask("relabel", "all.model", "--item", "song 005", "--remove", "odd", "calm")
    ask("relabel", "all.model", "--item", "song 004", "--add", "sad", "--verify")
    expected = [{"calm", "epic", "odd", "sad"}, {"epic"}]
    assert labels_of("all.model", "song 004", "song 005") == expected
    assert labels_of("all.model", "song 003", "song 006") == others
    before = files()
    for words, parts in (
        (["--remove", "gloomy"], ["--remove", "'gloomy'"]),
        (["--add", "calm", "--remove", "calm"], ["'calm'", "--add", "--remove"]),
        (["--to", "calm", "--add", "sad"], ["--to", "--add"]),
    ):
        message = fail("relabel", "all.model", "--item", "song 004", *words)
        assert all(part in message for part in parts), message
    assert files() == before


def test_existing_items_can_be_skipped(ask, fail, folder):
    head, *rows = Path("all.csv").read_text().splitlines()
    table("later.csv", [f"{rows[0]};fresh", *rows[1:]])  # a new label of an existing item
    given = told(ask("add", "old.model", "later.csv", "--skip-known", "--json"))
    assert (given["added"], given["skipped"], given["new_labels"]) == (10, 90, [])
    assert ask("rank", "old.model", "new.csv") == ask("rank", "all.model", "new.csv")
    before = files()
    printed = ask("add", "old.model", "all.csv", "--skip-known")
    told_in = "added 0 items, skipped 100 that were already there: old.model has 100 items"
    assert printed.startswith(told_in)
    assert "wrote" not in printed
    assert files() == before
    table("nameless.csv", [row.partition(",")[2] for row in rows], head.removeprefix("id,"))
    assert "--skip-known: nameless.csv" in fail("add", "old.model", "nameless.csv", "--skip-known")


def test_missing_items_can_be_skipped(ask, folder):
    words = ("song 001", "song 9999", "song 002", "--ignore-missing")
    printed = ask("forget", "old.model", *words)
    assert printed.startswith("forgot 2 items, 1 id not found: old.model has 88 items")
    before = files()
    given = told(ask("forget", "old.model", *words, "--json"))
    assert (given["forgotten"], given["missing"], given["written"]) == (0, 3, None)
    assert files() == before


def test_verify(answer, ask, fail, folder, monkeypatch):
    ask("add", "old.model", "more.csv")
    before = files()
    assert ask("verify", "old.model", "--jobs", 2).startswith("verified: labels, vectors,")
    given = told(ask("verify", "old.model", "--json"))
    assert (given["model"], given["agrees"], given["items"]) == ("old.model", True, 100)
    assert files() == before
    assert "old.csv" in fail("verify", "old.csv")
    assert "--jobs" in fail("verify", "old.model", "--jobs", 0)
    wrong = Verification(100, ("labels",), ("label 1 is carried by 3 rows, not by 4",))
    monkeypatch.setattr(nl.MLkNN, "verify", lambda *_, **__: wrong)
    code, printed, _ = answer("verify", "old.model")
    assert (code, printed.startswith("not verified: "), "label 1 is" in printed) == (1, True, True)
    code, printed, _ = answer("verify", "old.model", "--json")
    assert (code, told(printed)["agrees"]) == (1, False)


def test_replacing_a_model_with_changes_is_reported(answer, ask, folder):
    ask("add", "old.model", "more.csv")
    code, _, notes = answer("fit", "old.csv", "-o", "old.model")
    assert (code, "old.model.journal" in notes) == (0, True)
    assert len(nl.load("old.model").ids_) == 90
    ask("fit", "old.csv", "-o", "old.model")  # without a note


@pytest.mark.parametrize("mark", [";", "|", ","])
def test_a_label_with_the_separator_in_its_name(ask, folder, mark):
    data, both = nl.datasets.load("old.csv"), f"calm{mark}sad"
    names = [both, *data.label_names[1:]]
    nl.MLkNN(5).fit(data.X, data.Y, label_names=names, ids=data.row_names).save("m")
    ask("relabel", "m", "--item", "song 004", "--to", both)
    assert labels_of("m", "song 004") == [{both}]


def test_a_file_that_cannot_be_written_after_the_change(ask, fail, folder, monkeypatch):
    before = Path("old.model").read_bytes()

    def full(*_, **__):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), "old.model")

    with monkeypatch.context() as disk:
        disk.setattr("nearlabel.common.files.put_tree", full)
        message = fail("forget", "old.model", "song 003", "--compact")
        parts = ("is kept in old.model.journal", "File too large", "forget old.model --compact")
        assert all(part in message for part in parts), message
        assert Path("old.model").read_bytes() == before
        assert "song 003" not in nl.load("old.model").ids_
        assert "the change is kept" not in fail("forget", "old.model", "--compact")
    ask("forget", "old.model", "--compact")
    assert not Path("old.model.journal").exists()


@pytest.mark.parametrize(
    ("fitting", "part"),
    [
        (["--algorithm", "LAMLkNN", "--set", "n_clusters=2"], "the centers"),
        (["--algorithm", "PositivekNN"], "the rate and the cut"),
        (["--scale", "standard"], "the preprocessing"),
    ],
)
def test_compact_reports_what_still_depends_on_forgotten_items(ask, folder, fitting, part):
    ask("fit", "old.csv", "-o", "m", *fitting)
    assert "forgotten items" not in " ".join(ask("add", "m", "more.csv", "--compact").split())
    told = " ".join(ask("forget", "m", "song 003", "--compact").split())
    assert f"without forgotten items, except for their part in {part}" in told
    assert "without a trace" not in told


def test_refresh_learns_what_changes_leave(ask, folder):
    how = ("--algorithm", "LAMLkNN", "--set", "n_clusters=2")
    for name in ("old", "all"):
        ask("fit", f"{name}.csv", "-o", f"{name}.model", *how)
    before = nl.load("old.model").cluster_centers_
    ask("add", "old.model", "more.csv", "--compact")
    np.testing.assert_array_equal(nl.load("old.model").cluster_centers_, before)
    assert ask("forget", "old.model", "--refresh").startswith("refreshed: old.model has 100 items")
    expected = nl.load("all.model").cluster_centers_
    np.testing.assert_array_equal(nl.load("old.model").cluster_centers_, expected)
    told = " ".join(ask("forget", "old.model", "song 003", "--refresh", "--verify").split())
    assert "without a trace of forgotten items" in told
    assert not Path("old.model.journal").exists()


def test_errors_name_where_an_id_was_given(fail, folder, monkeypatch):
    Path("gone.txt").write_text("song 001\n")
    message = fail("forget", "old.model", "song 9999", "--ids", "gone.txt")
    assert "old.model has no item 'song 9999'" in message
    assert "gone.txt" not in message
    Path("gone.txt").write_text("song 9999\n")
    message = fail("forget", "old.model", "song 001", "--ids", "gone.txt")
    assert "gone.txt: old.model has no item 'song 9999'" in message
    for command in (["forget", "old.model", "--ids"], ["relabel", "old.model"]):
        content = b"id,tags\nsong 9999,sad\n"
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stream)
        assert "standard input: old.model has no item" in fail(*command, "-")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A small data set, and a folder with it and with models of its first 30 rows and of all."""
    folder = tmp_path_factory.mktemp("named")
    data = nl.datasets.make_local_labels(40, 3, 4, random_state=1)
    names = np.array(["sea", "sun", "city", "rain"])
    data = nl.datasets.Dataset(data.X, data.Y, names, np.array(["a", "b", "c"]))
    nl.datasets.save(data, folder / "all.npz")
    nl.datasets.save(data.rows(np.arange(30)), folder / "old.npz")
    for name in ("all", "old"):
        assert run(["fit", f"{folder}/{name}.npz", "-o", f"{folder}/{name}.model", "--k", "3"]) == 0
    return data, folder


@pytest.mark.parametrize("kind", ["npz", "arff", "csv", "jsonl", "json", "parquet", "txt"])
def test_files_of_every_format(ask, named, tmp_path, monkeypatch, kind):
    """Labels are matched by name; sparse text has names in files next to it."""
    pytest.importorskip("polars")
    data, folder = named
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    more, names = data.rows(np.arange(30, 40)), data.label_names
    turned = nl.datasets.Dataset(
        more.X[:, ::-1].copy(), more.Y[:, ::-1], names[::-1], more.feature_names[::-1]
    )
    nl.datasets.save(turned, f"more.{kind}")
    printed = ask("add", "old.model", f"more.{kind}", "--verify")
    assert printed.startswith("added 10 items, ids 31 to 40: old.model has 40 items and 4 labels")
    assert "all agree" in " ".join(printed.split())
    assert ask("rank", "old.model", "all.npz") == ask("rank", "all.model", "all.npz")


def test_a_pipeline_with_texts_and_gaps_keeps_its_preparation(answer, ask, tmp_path, monkeypatch):
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    head = "title,abstract,year,genre,tags"
    rows = [
        "The sea,waves and sand by the sea,1990,novel,sea;summer",
        "Night,dark city lights at night,2001,crime,city",
        "Sun,the sun and waves on the beach,1999,novel,summer",
        "Rain,rain in the city,,crime,city;rain",
    ]
    table("books.csv", rows, head)
    table("more.csv", ["poem,sea and rain,x,Storm,,neon;sea"], "genre,abstract,y,title,year,tags")
    fitting = ("--text", "abstract", "--id", "title", "--impute", "median", "--k", 2)
    ask("fit", "books.csv", "-o", "m", *fitting)
    before = nl.load("m")
    code, printed, notes = answer("add", "m", "more.csv", "--id", "title", "--verify")
    assert code == 0
    assert "'poem' is unknown to the model" in notes
    assert "new label: neon" in printed
    after = nl.load("m")
    frame = nl.datasets.load(
        "books.csv", text=["abstract"], id="title", gaps=True, frame=True, categories=["genre"]
    ).X
    expected, got = (model[0].transform(frame) for model in (before, after))
    np.testing.assert_array_equal(
        *(x.toarray() if sparse.issparse(x) else x for x in (expected, got))
    )
    assert after[-1].ids_.tolist() == ["The sea", "Night", "Sun", "Rain", "Storm"]
    why = ask("rank", "m", "books.csv", "--id", "title", "--why", "--top", 4)
    assert "Storm at " in why


def test_labels_without_names_are_numbers(ask, fail, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = nl.datasets.make_local_labels(30, 3, 4, random_state=1)
    data = nl.datasets.Dataset(made.X, made.Y)
    nl.datasets.save(data, "all.npz")
    ask("fit", "all.npz", "-o", "m", "--k", 3)
    table("one.csv", ["1,2,3,3;1", "1,2,4,"], "0,1,2,tags")
    assert told(ask("add", "m", "one.csv", "--json"))["ids"] == [31, 32]
    ask("relabel", "m", "--item", 1, "--to", 0, 4)
    model = nl.load("m")
    Y = model.label_matrix(model._labels).toarray()
    assert Y[[0, 30, 31]].tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0] * 5]
    for wrong in ("calm", "7", "-1"):
        assert repr(wrong) in fail("relabel", "m", "--item", 1, f"--to={wrong}")


def test_json(ask, folder):
    table("few.csv", ["song 700,1,2,3,4,5,6,calm;wild", "song 701,1,2,3,4,5,6,odd"])
    given = told(ask("add", "old.model", "few.csv", "--verify", "--json"))
    size = Path("old.model.journal").stat().st_size
    verified = given.pop("verified")
    assert given == {
        "model": "old.model",
        "added": 2,
        "ids": ["song 700", "song 701"],
        "skipped": 0,
        "items": 92,
        "labels": 14,
        "new_labels": ["odd", "wild"],
        "written": "old.model.journal",
        "bytes": size,
        "compacted": False,
        "refreshed": False,
    }
    assert verified["agrees"] is True
    assert verified["items"] == 92
    given = told(ask("forget", "old.model", "song 700", "--json", "--compact"))
    assert (given["forgotten"], given["written"], given["compacted"]) == (1, "old.model", True)
    assert given["bytes"] == Path("old.model").stat().st_size
    given = told(ask("relabel", "old.model", "--item", "song 701", "--to", "sad", "--json"))
    assert (given["relabelled"], given["verified"]) == (1, None)


def test_a_model_that_differs_is_reported(answer, folder, monkeypatch):
    wrong = Verification(100, ("labels",), ("label 1 is carried by 3 rows, not by 4",))
    monkeypatch.setattr(nl.MLkNN, "verify", lambda *_, **__: wrong)
    code, printed, _ = answer("add", "old.model", "more.csv", "--verify")
    assert (code, "not verified: " in printed, "label 1 is" in printed) == (OUR_ERROR, True, True)
    code, printed, _ = answer("forget", "old.model", "song 001", "--verify", "--json")
    assert (code, told(printed)["verified"]["agrees"]) == (OUR_ERROR, False)


def test_threads_are_those_of_the_command_not_of_the_file(ask, folder, monkeypatch):
    used = []
    add = nl.MLkNN.partial_fit
    monkeypatch.setattr(
        nl.MLkNN,
        "partial_fit",
        lambda self, *a, **k: used.append(self.n_jobs) or add(self, *a, **k),
    )
    ask("add", "old.model", "more.csv", "--jobs", 2, "--compact")
    assert used == [2]
    assert nl.load("old.model").n_jobs == 1


def test_methods_that_learn_again_explain_how_to_avoid_it(ask, answer, folder):
    ask("fit", "old.csv", "-o", "m", "--thresholds")
    ask("add", "m", "more.csv")
    code, _, notes = answer("rank", "m", "new.csv")
    assert (code, "learns again" in notes, "nearlabel forget MODEL --compact" in notes) == (0, 1, 1)
    ask("forget", "m", "--compact")
    ask("rank", "m", "new.csv")  # without a note


@pytest.fixture(scope="module")
def wrong(two_parts, tmp_path_factory):
    """A folder with files that cannot be changed, and data that cannot be added."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copytree(two_parts, folder, dirs_exist_ok=True)
    with chdir(folder):
        row = "1,2,3,4,5,6,calm"
        table("twice.csv", [f"song 900,{row}", f"song 900,{row}"])
        table("less.csv", [f"song 900,{row}"], HEAD.replace("tempo", "speed"))
        table("words.csv", [f"song 900,{row}", f"song 901,fast{row[1:]}"])
        table("nameless.csv", [row], HEAD.removeprefix("id,"))
        Path("empty.txt").write_text("\n\n")
        Path("all.txt").write_text("\n".join(one.split(",")[0] for one in rows_of("old.csv")[1:]))
        assert run(["fit", "old.csv", "-o", "numbers.model", "--ignore", "id"]) == 0
        data = nl.datasets.load("old.csv")
        graph = nl.neighbor_graph(data.X, 5)
        nl.save(graph, "graph.model")
        nl.MLkNN(5).fit_graph(graph, data.Y).save("bare.model")
    return folder


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["add", "old.model"], ["--data requires an argument"]),
        (["add", "none", "more.csv"], ["none: No such file"]),
        (["add", "old.csv", "more.csv"], ["old.csv", "the model comes first"]),
        (["add", "old.model", "none.csv"], ["'none.csv'"]),
        (["add", "old.model", "all.model"], ["all.model", "pass --format"]),
        (["add", "old.model", "new.csv"], ["new.csv", "pass --tags for a column"]),
        (["add", "old.model", "old.csv"], ["'song 001' is already in use"]),
        (["add", "old.model", "twice.csv"], ["'song 900' occurs twice"]),
        (["add", "old.model", "less.csv"], ["less.csv", "'tempo'"]),
        (["add", "old.model", "words.csv"], ["words.csv, line 3", "'tempo'", "'fast'"]),
        (["add", "old.model", "nameless.csv"], ["nameless.csv has no ids", "--id"]),
        (["add", "old.model", "more.csv", "--text", "tempo"], ["nknown option", "--text"]),
        (["add", "old.model", "more.csv", "--jobs", "0"], ["--jobs", "0"]),
        (["add", "numbers.model", "more.csv"], ["'song 091'", "--ignore id"]),
        (["add", "graph.model", "more.csv"], ["graph.model", "NeighborGraph"]),
        (["add", "bare.model", "more.csv"], ["bare.model", "graph"]),
        (["forget", "bare.model", "1"], ["bare.model", "graph"]),
        (["forget", "old.model"], ["ID is missing"]),
        (
            ["forget", "old.model", "song 001", "song 900"],
            ["old.model has no item 'song 900'", "--ignore-missing"],
        ),
        (["forget", "old.model", "more.csv"], ["--ids more.csv"]),
        (["forget", "old.model", "--ids", "none.txt"], ["none.txt"]),
        (["forget", "old.model", "--ids", "empty.txt"], ["empty.txt has no id"]),
        (["forget", "old.model", "--ids", "all.txt"], ["ID has 89 of 90 rows", "at least 2"]),
        (["forget", "numbers.model", "one"], ["numbers.model", "numbers", "'one'"]),
        (["forget", "numbers.model", "91"], ["numbers.model has no item 91"]),
        (["relabel", "old.model"], ["DATA is missing", "--item"]),
        (["relabel", "old.model", "--item", "song 001"], ["--item", "--to, --add"]),
        (["relabel", "old.model", "--to", "sad"], ["--to", "need --item"]),
        (["relabel", "old.model", "more.csv", "--add", "sad"], ["--add", "need --item"]),
        (["relabel", "old.model", "more.csv", "--item", "a", "--to", "b"], ["--item", "DATA"]),
        (["relabel", "old.model", "more.csv"], ["more.csv", "'song 091'", "and 7 more"]),
        (["relabel", "old.model", "twice.csv"], ["twice.csv has two rows", "'song 900'"]),
        (["relabel", "old.model", "nameless.csv"], ["nameless.csv has no ids", "--id"]),
        (["relabel", "old.model", "new.csv"], ["new.csv", "pass --tags for a column"]),
    ],
)
def test_errors_are_one_line_and_change_nothing(fail, wrong, monkeypatch, arguments, parts):
    monkeypatch.chdir(wrong)
    before = files()
    message = fail(*arguments)
    assert all(part in message for part in parts), message
    assert files() == before


def test_a_file_that_another_process_changes(fail, folder):
    with nl.load("old.model", journal=True):
        message = fail("add", "old.model", "more.csv")
        assert all(part in message for part in ("old.model", "another process"))
    assert not Path("old.model.journal").exists()


def test_a_damaged_journal(ask, fail, folder):
    ask("add", "old.model", "more.csv")
    content = bytearray(Path("old.model.journal").read_bytes())
    content[len(content) // 2] ^= 1
    Path("old.model.journal").write_bytes(content)
    before = files()
    for command in (["forget", "old.model", "song 001"], ["rank", "old.model", "new.csv"]):
        assert "old.model.journal is altered" in fail(*command)
    assert files() == before
