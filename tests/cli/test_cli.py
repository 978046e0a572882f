"""The command line as people and programs see it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.cli import run

VERBS = ["demo", "fit", "predict", "rank", "evaluate", "compare"]
VERBS += [f"datasets {verb}" for verb in ("list", "describe", "fetch", "convert")]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples_in_80_columns(ask, verb):
    printed = ask(*verb.split(), "--help")
    assert printed.startswith(f"Usage: nearlabel {verb}")
    assert max(map(len, printed.splitlines())) <= 80
    examples = printed.partition("Examples:\n")[2].strip().splitlines()
    assert examples
    assert all(f"nearlabel {verb}" in line for line in examples)


def test_help_and_version(ask):
    printed = ask("--help")
    assert all(verb.split()[0] in printed for verb in VERBS)
    assert ask("--version") == f"{nl.__version__}\n"
    assert ask() == printed


def test_the_examples_of_the_help_are_accepted(ask, songs, monkeypatch, tmp_path):
    """Each example on the songs parses and runs; those on public sets need the data folder."""
    shutil.copytree(songs, tmp_path / "songs")
    monkeypatch.chdir(tmp_path / "songs")
    for verb in VERBS:
        examples = ask(*verb.split(), "--help").partition("Examples:\n")[2].strip().splitlines()
        for line in examples:
            words = line.split("nearlabel ")[-1].split()
            if "songs.csv" not in words and "new.csv" not in words:
                continue
            known = [word for word in words if word not in ("--tags", "moods", "--id", "title")]
            assert ask(*known) != "", line


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
    assert "of 10 neighbors: song " in ask("rank", "songs.model", "new.csv", "--why")


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
    assert message.endswith("less.csv: it has no feature 'tempo'\n")


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
    assert "must end in .csv, .tsv or .jsonl" in fail(
        "rank", "songs.model", "new.csv", "-o", "r.xls"
    )
    missing = tmp_path / "none" / "r.csv"
    assert "there is no folder" in fail("rank", "songs.model", "new.csv", "-o", missing)


def test_standard_input(ask, here, monkeypatch):
    expected = ask("rank", "songs.model", "new.csv", "--json")
    content = Path("new.csv").read_bytes()
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", stream)
    assert ask("rank", "songs.model", "-", "--json") == expected


def test_evaluate(ask, fail, here, tmp_path):
    told = json.loads(ask("evaluate", "songs.csv", "--k", 5, 10, "--scale", "standard", "--json"))
    assert (told["split"], told["items"], told["convention"]) == ("cv10", 600, "paper")
    assert [result["k"] for result in told["results"]] == [5, 10]
    assert set(told["results"][0]["metrics"]) == set(nl.metrics.METRICS)
    assert 0 < told["results"][0]["std"]["ranking_loss"] < 0.1
    again = json.loads(ask("evaluate", "songs.csv", "--k", 10, "--scale", "standard", "--json"))
    assert again["results"][0] == told["results"][1]  # one search for all gives the same
    other = json.loads(ask("evaluate", "songs.csv", "--seed", 1, "--scale", "standard", "--json"))
    assert other["results"][0] != told["results"][1]
    half = ["evaluate", "songs.csv", "--split", "holdout", "--test-size", 0.5]
    table = ask(*half, "--metric", "ranking_loss", "coverage")
    assert "300 items to learn from, 300 to be tried on" in table
    assert [line.split()[0] for line in table.splitlines()[-2:]] == ["ranking_loss", "coverage"]
    ask(*half, "-o", tmp_path / "e.csv")
    rows = rows_of(tmp_path / "e.csv")
    assert len(rows) == 1
    assert f"{float(rows[0]['coverage']):.4f}" in table
    assert "--metric must be one of 'hamming_loss'" in fail(*half, "--metric", "accuracy")
    assert "no split of its own" in fail("evaluate", "songs.csv", "--split", "official")
    no_coverage = fail(*half, "--metric", "one_error", "--convention", "sklearn")
    assert "convention 'sklearn' has no one_error" in no_coverage


def test_evaluate_is_what_the_library_computes(ask, tmp_path):
    data = nl.datasets.make_local_labels(200, 4, 6)
    nl.datasets.save(data, tmp_path / "made.npz")
    told = json.loads(ask("evaluate", tmp_path / "made.npz", "--k", 7, "--json"))
    train, test = data.rows(data.train), data.rows(data.test)
    model = nl.MLkNN(n_neighbors=7).fit(train.X, train.Y)
    expected = nl.metrics.evaluate(test.Y, model.label_scores(test.X), model.predict(test.X))
    assert told["split"] == "official"
    assert told["results"][0]["metrics"] == expected
    assert told["results"][0]["std"] is None


def test_published_digits(ask, load):
    """The 2017 paper's emotions row: min-max scaling, k = 8, Mulan's convention."""
    load("emotions")
    options = ["--k", 8, "--scale", "minmax", "--convention", "mulan", "--json"]
    told = json.loads(ask("evaluate", "emotions", *options))
    metrics = told["results"][0]["metrics"]
    assert round(metrics["one_error"], 3) == 0.252
    assert round(metrics["coverage"], 3) == 1.787
    assert round(metrics["ranking_loss"], 3) == 0.145
    assert round(metrics["average_precision"], 3) == 0.818


def test_datasets(ask, fail, here, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert ask("datasets", "list").startswith(f"no data set in {tmp_path}")
    for name in ("one.npz", "three.jsonl", "two.csv"):
        assert ask("datasets", "convert", "songs.csv", tmp_path / name).startswith("wrote ")
    listed = json.loads(ask("datasets", "list", "--json"))
    assert [item["name"] for item in listed] == ["one", "three", "two"]
    assert "3 data sets in" in ask("datasets", "list")
    told = json.loads(ask("datasets", "describe", "one", "two", "three", "songs.csv", "--json"))
    for item in told:
        del item["dataset"]
        assert item == told[0]
    assert (told[0]["instances"], told[0]["features"], told[0]["labels"]) == (600, 6, 12)
    assert "cardinality" in ask("datasets", "describe", "one")
    assert "which data set?" in fail("datasets", "describe")
    assert "which data set?" in fail("datasets", "fetch")
    assert "name must be one of" in fail("datasets", "fetch", "nothing")
    assert "path must end in one of" in fail("datasets", "convert", "songs.csv", tmp_path / "x.xls")


def test_what_a_form_has_no_place_for_is_a_note(here, tmp_path, capsys):
    assert run(["datasets", "convert", "songs.csv", str(tmp_path / "two.arff")]) == 0
    note = "nearlabel: note: the format 'arff' has no place for the names of rows\n"
    assert capsys.readouterr().err == note


def test_fit_on_a_part_and_with_few_rows(ask, fail, here, tmp_path, capsys):
    data = nl.datasets.make_local_labels(60, 3, 4)
    nl.datasets.save(data, tmp_path / "made.npz")
    model = tmp_path / "m"
    told = json.loads(ask("fit", tmp_path / "made.npz", "-o", model, "--part", "train", "--json"))
    assert told["items"] == int(data.train.sum())
    ranked = json.loads(ask("rank", model, tmp_path / "made.npz", "--part", "test", "--json"))
    assert len(ranked) == int((~data.train).sum())
    assert [item["id"] for item in ranked][:2] == [1, 2]
    assert "this data set has no split" in fail("fit", "songs.csv", "-o", model, "--part", "train")
    assert run(["fit", "songs.csv", "-o", str(model), "--k", "5000"]) == 0
    assert "note: n_neighbors=5000 is more than the 599 other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], 'Command "fit" parameter --data requires an argument.'),
        (["fly"], 'Unknown command "fly"'),
        (["fit", "songs.csv"], 'Command "fit" parameter --output requires an argument.'),
        (
            ["fit", "songs.csv", "-o", "m", "--k", "x"],
            "Invalid value for --k: a whole number expected; got 'x'.",
        ),
        (
            ["fit", "songs.csv", "-o", "m", "--k", "0"],
            "n_neighbors must be an integer from 1 up; got 0",
        ),
        (["fit", "songs.csv", "-o", "m", "--fast"], "Unknown option: --fast"),
        (["fit", "none.csv", "-o", "m"], "no data set 'none.csv': there is no such file"),
        (["fit", "new.csv", "-o", "m"], "new.csv, line 1: which columns are labels?"),
        (
            ["fit", "songs.csv", "-o", "m", "--xml", "x"],
            "--xml is not supported for the format 'csv'; got 'x'",
        ),
        (["rank", "songs.csv", "new.csv"], "songs.csv is not a nearlabel file"),
        (["rank", "none", "new.csv"], "none: No such file or directory"),
        (
            ["rank", "songs.model", "new.csv", "--top", "0"],
            "top must be an integer from 1 up; got 0",
        ),
        (
            ["rank", "songs.model", "new.csv", "--why", "-o", "w.csv"],
            "--why has no place in a table",
        ),
    ],
)
def test_users_errors_are_one_line_with_code_2(fail, here, arguments, message):
    assert message in fail(*arguments)
    assert not Path("m").exists()


def test_what_is_read_is_not_written_to(fail, here, tmp_path):
    shutil.copy("songs.csv", tmp_path / "mine.csv")
    before = (tmp_path / "mine.csv").read_bytes()
    mine = tmp_path / "mine.csv"
    for command in (
        ["fit", mine, "-o", mine],
        ["rank", "songs.model", mine, "-o", mine],
        ["predict", "songs.model", mine, "-o", mine],
        ["evaluate", mine, "-o", mine],
        ["datasets", "convert", mine, mine],
    ):
        assert "this file is read; give another one" in fail(*command)
    assert "this is a folder; give a file" in fail("fit", mine, "-o", tmp_path)
    assert mine.read_bytes() == before


def test_features_without_names(ask, tmp_path):
    """A set without names goes through every form; a file with labels can be predicted, too."""
    made = nl.datasets.make_local_labels(60, 3, 4)
    data = nl.datasets.Dataset(made.X, made.Y)
    answers = []
    for suffix in (".npz", ".csv", ".arff", ".jsonl", ".txt"):
        path = tmp_path / f"made{suffix}"
        nl.datasets.save(data, path)
        ask("fit", path, "-o", tmp_path / "m")
        answers.append(ask("rank", tmp_path / "m", path, "--why", "--json"))
    assert set(answers) == {answers[0]}
    first = json.loads(answers[0])[0]
    assert first["id"] == 1
    carried = {str(label) for label in data.Y[[0]].indices}
    nearest = [one["neighbors"][0]["id"] for one in first["labels"] if one["label"] in carried]
    assert nearest == [1] * len(carried)


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
    names = np.array(["a;b", "c", "d"])  # a table that is read again would divide the first
    nl.datasets.save(nl.datasets.Dataset(made.X, made.Y, names), tmp_path / "made.npz")
    ask("fit", tmp_path / "made.npz", "-o", tmp_path / "m")
    ask("predict", tmp_path / "m", tmp_path / "made.npz", "-o", tmp_path / "p.jsonl")
    message = fail("predict", tmp_path / "m", tmp_path / "made.npz", "-o", tmp_path / "p.csv")
    assert "a label has ';' in its name: write a .jsonl file" in message


def test_the_choices_of_options_are_those_of_the_library():
    from typing import get_args

    from nearlabel.cli import options
    from nearlabel.cli.measurement_options import Measuring
    from nearlabel.datasets.loading import FORMATS
    from nearlabel.experiments import SCALES
    from nearlabel.metrics import CONVENTIONS
    from nearlabel.search.exact.distances import SPACES

    def choices(annotation):
        found = [part for part in get_args(annotation) if part is not type(None)]
        return set(get_args(found[0]) if get_args(found[0]) else found)

    assert choices(options.Scale) == set(SCALES)
    assert choices(options.Distance) == set(SPACES)
    assert choices(get_type_hints(options.Reading)["format"]) == set(FORMATS)
    assert set(get_args(get_type_hints(Measuring)["convention"])) == set(CONVENTIONS)


@pytest.mark.parametrize(
    "command",
    [
        ["rank", "songs.model", "new.csv", "--top", "3.5"],
        ["evaluate", "songs.csv", "--k", "5", "7.6"],
        ["evaluate", "songs.csv", "--seed", "0x10"],
    ],
)
def test_numbers_are_not_rounded(fail, here, command):
    assert f"a whole number expected; got '{command[-1]}'." in fail(*command)


def test_metrics_that_are_not_defined(ask, tmp_path):
    path = tmp_path / "same.csv"
    path.write_text("x,tags\n" + "".join(f"{row},a\n" for row in range(30)))
    told = json.loads(ask("evaluate", path, "--k", 3, "--json"))
    assert told["results"][0]["metrics"]["ranking_loss"] is None
    assert told["results"][0]["metrics"]["hamming_loss"] == 0
    ask("evaluate", path, "--k", 3, "-o", tmp_path / "e.jsonl")
    assert json.loads((tmp_path / "e.jsonl").read_text().splitlines()[0])["ranking_loss"] is None
    assert "not defined" in ask("evaluate", path, "--k", 3)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
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


def test_tables_of_many_columns_stay_within_80(ask, here):
    wide = ask("evaluate", "songs.csv", "--k", 1, 2, 3, 4, 5, 6, 7)
    assert max(map(len, wide.splitlines())) <= 80
    assert all(wide.count(f" k = {k}\n") + wide.count(f" k = {k} ") == 1 for k in range(1, 8))


def test_a_graph_is_no_model(fail, here, tmp_path):
    nl.neighbor_graph(np.eye(4), 2).save(tmp_path / "graph")
    assert "holds a NeighborGraph and no model" in fail("rank", tmp_path / "graph", "new.csv")


def test_an_error_of_ours_is_one_line_too(monkeypatch, capsys):
    def broken(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("nearlabel.datasets.load", broken)
    assert run(["evaluate", "songs.csv"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("nearlabel: an error of nearlabel itself, KeyError: 'oops'; please rep")
    assert error.count("\n") == 1
    monkeypatch.setenv("NEARLABEL_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run(["evaluate", "songs.csv"])
