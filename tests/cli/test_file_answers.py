"""predict and rank: predictions of a model file."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.cli import file_answers as answers
from nearlabel.cli import rank as ranking
from nearlabel.cli import run
from nearlabel.cli.process import INTERRUPTED
from nearlabel.search import ExactIndex


def test_from_a_table_to_ranked_tags_in_two_commands(ask, here, tmp_path):
    model = tmp_path / "m.model"
    printed = ask("fit", "songs.csv", "-o", model)
    assert "600 items, 6 features, 12 labels" in printed
    lines = ask("rank", model, "new.csv", "--top", 2).splitlines()
    assert lines[0].split() == ["item", "labels", "with", "their", "scores"]
    assert [line[:8] for line in lines[2:]] == ["song 601", "song 602", "song 603"]


def test_the_model_answers_as_the_library_does(ask, here):
    """Names, scores and decisions are those of the estimator on the same numbers."""
    songs, new = nl.datasets.load("songs.csv"), nl.datasets.load("new.csv", labels=())
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(songs.X)
    model = nl.MLkNN().fit(scaler.transform(songs.X), songs.Y, label_names=songs.label_names)
    best = model.rank(scaler.transform(new.X), top=3)
    ranked = json.loads(ask("rank", "songs.model", "new.csv", "--top", 3, "--json"))
    assert [[one["label"] for one in item["labels"]] for item in ranked] == best.names.tolist()
    assert [[one["score"] for one in item["labels"]] for item in ranked] == best.scores.tolist()
    assert [item["id"] for item in ranked] == ["song 601", "song 602", "song 603"]
    decided = model.predict(scaler.transform(new.X))
    predicted = json.loads(ask("predict", "songs.model", "new.csv", "--json"))
    assert [item["labels"] for item in predicted] == [
        songs.label_names[decided[[row]].indices].tolist() for row in range(3)
    ]
    table = ask("predict", "songs.model", "new.csv")
    assert ", ".join(predicted[0]["labels"]) in table


def test_why(ask, here):
    item = json.loads(ask("rank", "songs.model", "new.csv", "--top", 2, "--why", "--json"))[0]
    model = nl.load("songs.model")
    with pytest.warns(UserWarning, match="feature names"):
        x = model[0].transform(nl.datasets.load("new.csv", labels=()).X[:1])
    explained = model[-1].explain(x, 2)
    assert [voter["id"] for voter in item["labels"][0]["neighbors"]] == [
        voter.id for voter in explained[0].neighbors
    ]
    assert item["labels"][0]["neighbors"][0]["id"].startswith("song ")
    assert item["n_neighbors"] == explained.n_neighbors == 10
    for told, one in zip(item["labels"], explained, strict=True):  # everything shown in a terminal
        assert told["terms"] == dict(one.terms)
        assert (told["score"], told["predicted"]) == (one.score, one.predicted)
        assert [(by["id"], by["distance"], by["score_without"]) for by in told["neighbors"]] == [
            (by.id, by.distance, by.score_without) for by in one.neighbors
        ]
    printed = ask("rank", "songs.model", "new.csv", "--top", 2, "--why")
    assert max(map(len, printed.splitlines())) <= 80
    first = printed.partition("song 602\n")[0].removeprefix("song 601\n")
    assert first.split() == str(explained).split()  # the same text, wrapped to 80 columns


def test_columns_are_found_by_name(ask, fail, here, tmp_path):
    rows = list(csv.DictReader(io.StringIO(Path("new.csv").read_text())))
    order = ["acoustic", "title", "speech", "id", "tempo", "energy", "loudness", "brightness"]
    with (tmp_path / "mixed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, order)
        writer.writeheader()
        writer.writerows({**row, "title": "any text"} for row in rows)
    mixed = ask("rank", "songs.model", tmp_path / "mixed.csv", "--json")
    assert mixed == ask("rank", "songs.model", "new.csv", "--json")
    text = Path("new.csv").read_text().replace("tempo", "speed")
    (tmp_path / "less.csv").write_text(text)
    message = fail("rank", "songs.model", tmp_path / "less.csv")
    assert "less.csv" in message
    assert "'tempo'" in message


@pytest.mark.parametrize("made_by", ["fit", "Python"])
def test_columns_that_are_called_by_numbers(ask, fail, tmp_path, monkeypatch, made_by):
    """They are found by these names, also by a model without column names; npz has none."""
    monkeypatch.chdir(tmp_path)
    Path("songs.csv").write_text("0,1,tags\n0,100,x\n1,100,x\n0,0,y\n1,1,y\n")
    if made_by == "fit":
        ask("fit", "songs.csv", "-o", "m", "--k", 1, "--algorithm", "BRkNN")
    else:
        songs = nl.datasets.load("songs.csv")
        nl.BRkNN(1).fit(songs.X, songs.Y, label_names=songs.label_names).save("m")
    tables = ("0,1\n0,100\n", "1,0\n100,0\n", "2,1,0,word\n5,100,0,a\n")
    for table in tables:
        Path("new.csv").write_text(table)
        assert json.loads(ask("predict", "m", "new.csv", "--json"))[0]["labels"] == ["x"]
    Path("new.csv").write_text("1,2\n0,100\n")
    message = fail("rank", "m", "new.csv")
    assert all(part in message for part in ("new.csv", "'0'"))
    for X in (np.array([[0.0, 100]]), sparse.csr_array([[0.0, 100]])):
        items = nl.datasets.Dataset(X, sparse.csr_array((1, 0), dtype=np.int8))
        nl.datasets.save(items, "new.npz")
        assert json.loads(ask("predict", "m", "new.npz", "--json"))[0]["labels"] == ["x"]


def test_a_table_of_numbered_columns_with_gaps(ask, fail, tmp_path, monkeypatch):
    """The model of such a table knows its columns like any other."""
    monkeypatch.chdir(tmp_path)
    Path("songs.csv").write_text("0,1,tags\n0,100,x\n1,,x\n0,0,y\n1,1,y\n")
    ask("fit", "songs.csv", "-o", "m", "--k", 1, "--impute", "median")
    Path("new.csv").write_text("title,1,0\nA,,0\nB,100,\n")
    assert len(json.loads(ask("predict", "m", "new.csv", "--json"))) == 2
    Path("new.csv").write_text("b,a\n100,0\n")
    assert "'0', '1'" in fail("rank", "m", "new.csv")


def rows_of(path, delimiter=","):
    return list(csv.DictReader(io.StringIO(path.read_text()), delimiter=delimiter))


def test_result_files(ask, fail, here, tmp_path):
    assert ask("rank", "songs.model", "new.csv", "-o", tmp_path / "r.csv").startswith("wrote ")
    rows = rows_of(tmp_path / "r.csv")
    assert list(rows[0]) == ["id", "rank", "label", "score"]
    assert len(rows) == 15
    ranked = json.loads(ask("rank", "songs.model", "new.csv", "--json"))
    assert [row["label"] for row in rows[:5]] == [one["label"] for one in ranked[0]["labels"]]
    assert [float(row["score"]) for row in rows[:5]] == [o["score"] for o in ranked[0]["labels"]]
    ask("rank", "songs.model", "new.csv", "-o", tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == ranked
    ask("predict", "songs.model", "new.csv", "-o", tmp_path / "p.tsv")
    predicted = json.loads(ask("predict", "songs.model", "new.csv", "--json"))
    rows = rows_of(tmp_path / "p.tsv", "\t")
    assert [row["labels"].split(";") for row in rows] == [item["labels"] for item in predicted]
    told = json.loads(ask("predict", "songs.model", "new.csv", "-o", tmp_path / "p.csv", "--json"))
    assert told == {"output": str(tmp_path / "p.csv"), "rows": 3}
    message = fail("rank", "songs.model", "new.csv", "-o", "r.xls")
    assert all(part in message for part in ("--output", ".csv", ".tsv", ".jsonl", "r.xls"))
    missing = tmp_path / "none" / "r.csv"
    assert f"--output {missing}" in fail("rank", "songs.model", "new.csv", "-o", missing)


def test_results_on_standard_output(ask, fail, here, tmp_path, monkeypatch):
    """As the same command writes them to a .csv file; with --json as without -o."""
    monkeypatch.chdir(tmp_path)
    model, new, songs = here / "songs.model", here / "new.csv", here / "songs.csv"
    for command in (
        ("predict", model, new),
        ("rank", model, new),
        ("evaluate", songs, "--split", "holdout"),
        ("tune", songs, "--k", "3-5"),
    ):
        ask(*command, "-o", "file.csv")
        assert ask(*command, "-o", "-") == (tmp_path / "file.csv").read_text()
        assert ask(*command, "-o", "-", "--json") == ask(*command, "--json")
    printed = ask("compare", songs, "--algorithm", "BRkNN", "-o", "-")
    assert [row["algorithm"] for row in csv.DictReader(io.StringIO(printed))] == ["BRkNN"]
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]
    assert ".jsonl" in fail("rank", model, new, "--why", "-o", "-")
    assert "got --json" in fail("rank", model, new, "-o", "--json")


def test_standard_input(ask, here, monkeypatch):
    expected = ask("rank", "songs.model", "new.csv", "--json")
    content = Path("new.csv").read_bytes()
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", stream)
    assert ask("rank", "songs.model", "-", "--json") == expected


def test_a_model_of_two_classes(ask, here, tmp_path):
    songs = nl.datasets.load("songs.csv")
    y = np.array(["no", "yes"])[songs.Y[:, [5]].toarray().ravel()]
    model = nl.MLkNN().fit(songs.X, y)
    model.save(tmp_path / "m")
    decided = model.predict(songs.X).tolist()
    assert set(decided) == {"no", "yes"}
    predicted = json.loads(ask("predict", tmp_path / "m", "songs.csv", "--json"))
    assert ["".join(item["labels"]) or "no" for item in predicted] == decided


def test_labels_with_every_separator(ask, fail, tmp_path):
    made = nl.datasets.make_local_labels(40, 2, 3, labels_per_sample=1)
    names = np.array(["a;b", "c", "d"])  # reading the table again would split the first
    nl.datasets.save(nl.datasets.Dataset(made.X, made.Y, names), tmp_path / "made.npz")
    ask("fit", tmp_path / "made.npz", "-o", tmp_path / "m")
    ask("predict", tmp_path / "m", tmp_path / "made.npz", "-o", tmp_path / "p.jsonl")
    message = fail("predict", tmp_path / "m", tmp_path / "made.npz", "-o", tmp_path / "p.csv")
    assert "';'" in message
    assert ".jsonl" in message


@pytest.mark.parametrize("scale", ["minmax", "standard", "rank"])
def test_sparse_items_for_a_model_of_dense_ones(ask, here, tmp_path, scale):
    ask("fit", "songs.csv", "-o", tmp_path / "m", "--scale", scale)
    expected = json.loads(ask("rank", tmp_path / "m", "new.csv", "--json"))
    new = nl.datasets.load("new.csv", labels=())
    lines = [
        json.dumps({"id": str(name), "features": dict(zip(new.feature_names, row, strict=True))})
        for name, row in zip(new.row_names, new.X.tolist(), strict=True)
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    assert json.loads(ask("rank", tmp_path / "m", tmp_path / "new.jsonl", "--json")) == expected


def test_columns_that_a_model_does_not_know_do_not_matter(ask, here, tmp_path):
    rows = Path("new.csv").read_text().splitlines()
    extra = [rows[0] + ",split,note,note,tags", *(row + ",x,1,2,;" for row in rows[1:])]
    (tmp_path / "more.csv").write_text("\n".join(extra))
    command = ("rank", "songs.model", tmp_path / "more.csv", "--json")
    assert ask(*command) == ask("rank", "songs.model", "new.csv", "--json")


def test_a_part_of_a_table(ask, here, tmp_path):
    rows = Path("new.csv").read_text().splitlines()
    parts = [rows[0] + ",split", rows[1] + ",train", rows[2] + ",test", rows[3] + ",test"]
    (tmp_path / "parts.csv").write_text("\n".join(parts))
    ranked = json.loads(
        ask("rank", "songs.model", tmp_path / "parts.csv", "--part", "test", "--json")
    )
    assert [item["id"] for item in ranked] == ["song 602", "song 603"]


def test_a_graph_is_not_a_model(fail, here, tmp_path):
    nl.neighbor_graph(np.eye(4), 2).save(tmp_path / "graph")
    assert "NeighborGraph" in fail("rank", tmp_path / "graph", "new.csv")


@pytest.mark.parametrize("verb", ["predict", "rank"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_files_of_many_items_are_written_in_blocks(verb, suffix, ask, there, monkeypatch, searches):
    ask(verb, "exact", "many.npz", "-o", f"whole.{suffix}")
    searches.clear()
    monkeypatch.setattr(answers, "_ROWS_AT_ONCE", 700)
    ask(verb, "exact", "many.npz", "-o", f"blocks.{suffix}")
    assert [rows for rows, _ in searches] == [700, 700, 100]
    ours, whole = (Path(f"{name}.{suffix}").read_bytes() for name in ("blocks", "whole"))
    assert ours == whole


@pytest.mark.parametrize("where", ["search", "answer"])
@pytest.mark.parametrize("verb", ["predict", "rank"])
def test_an_interrupt_leaves_no_half_written_file(verb, where, there, monkeypatch, capsys):
    before = set(there.iterdir())
    owner, name = (ExactIndex, "graph") if where == "search" else (nl.MLkNN, verb)
    work, calls = getattr(owner, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    monkeypatch.setattr(answers, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(owner, name, interrupted)
    assert run([verb, "exact", "many.npz", "-o", "half.csv"]) == INTERRUPTED
    assert capsys.readouterr().err == "nearlabel: interrupted\n"
    assert set(there.iterdir()) == before


def test_progress_of_answers(there, monkeypatch):
    told = []

    class Noted:
        def __init__(self, what):
            self.what = what

        def __enter__(self):
            return lambda *steps: told.append((self.what, *steps))

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(answers, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(answers, "steps", Noted)
    for verb, what in (("predict", "predicting"), ("rank", "ranking")):
        told.clear()
        assert run([verb, "exact", "many.npz", "-o", "p.csv"]) == 0
        assert told == sorted(told)
        assert {one[0] for one in told} == {what}
        assert told[-1][1:] == (1500, 1500)
    told.clear()
    nl.datasets.save(nl.datasets.make_local_labels(9, 6, 12), there / "few.npz")
    monkeypatch.setattr(ranking, "_EXPLAINED_AT_ONCE", 4)
    assert run(["rank", "exact", "few.npz", "--why", "-o", "w.jsonl"]) == 0
    assert [one[1] for one in told] == [4, 8, 9]
    monkeypatch.setattr(ranking, "_EXPLAINED_AT_ONCE", 9)
    assert run(["rank", "exact", "few.npz", "--why", "-o", "whole.jsonl"]) == 0
    assert (there / "w.jsonl").read_bytes() == (there / "whole.jsonl").read_bytes()


def test_names_are_escaped_in_a_terminal(ask, tmp_path):
    """Terminals get escapes, programs the original names."""
    made = nl.datasets.make_local_labels(40, 2, 2, labels_per_sample=1)
    evil = "\x1b[31mred\x07\n+ b\x9b2J\u202e"
    rows = np.array([f"{evil}{row}" for row in range(40)])
    data = nl.datasets.Dataset(made.X, made.Y, np.array([evil, "b"]), row_names=rows)
    nl.datasets.save(data, tmp_path / "made.npz")
    files = (tmp_path / "m", tmp_path / "made.npz")
    ask("fit", files[1], "-o", files[0])
    for command in (("predict",), ("rank",), ("rank", "--why")):
        printed = ask(command[0], *files, *command[1:])
        assert all(line.isprintable() for line in printed.split("\n"))
        joined = "".join(printed.split())
        assert r"\x1b[31mred\x07\n+b\x9b2J\u202e" in joined
        told = json.loads(ask(command[0], *files, *command[1:], "--json"))
        assert told[3]["id"] == f"{evil}3"


def test_cells_are_data(ask, tmp_path):
    """Cells that look like formulas are not changed."""
    made = nl.datasets.make_local_labels(40, 2, 2, labels_per_sample=1)
    names, rows = np.array(["=1+1", "@b"]), np.array([f"-{row}" for row in range(40)])
    data = nl.datasets.Dataset(made.X, made.Y, names, row_names=rows)
    nl.datasets.save(data, tmp_path / "made.npz")
    ask("fit", tmp_path / "made.npz", "-o", tmp_path / "m")
    ask("rank", tmp_path / "m", tmp_path / "made.npz", "-o", tmp_path / "r.csv")
    cells = rows_of(tmp_path / "r.csv")
    assert cells[2]["id"] == "-1"
    assert {cell["label"] for cell in cells} == {"=1+1", "@b"}
