"""tune and compare --tune."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest

import nearlabel as nl


def test_the_best(ask, here):
    printed = ask("tune", "songs.csv", "--k", "1-20", "--scale", "standard")
    assert "20 candidates, one graph" in printed
    assert max(len(line) for line in printed.splitlines()) <= 80
    found = json.loads(ask("tune", "songs.csv", "--k", "1-20", "--scale", "standard", "--json"))
    assert [one["k"] for one in found["results"]] == list(range(1, 21))
    data = nl.datasets.load("songs.csv")
    from sklearn.preprocessing import StandardScaler

    search = nl.GraphSearchCV(nl.MLkNN(), {"n_neighbors": list(range(1, 21))})
    search.fit(StandardScaler().fit_transform(data.X), data.Y)
    losses = [one["ranking_loss"] for one in found["results"]]
    assert losses == (-search.cv_results_["mean_test_score"]).tolist()
    assert found["best"]["k"] == search.best_params_["n_neighbors"]
    assert f"k {found['best']['k']}" in printed


def test_methods_parameters_and_distances(ask, here, tmp_path):
    options = ("--algorithm", "MLkNN", "LAMLkNN", "--k", 3, 9, "--split", "cv3")
    options += ("--grid", "n_clusters=2,3", "smoothing=0.5,1", "--distance", "cosine", "euclidean")
    target = tmp_path / "all.csv"
    metrics = ("--metric", "average_precision", "hamming_loss", "-o", target)
    printed = ask("tune", "songs.csv", *options, *metrics)
    assert f"wrote {target}" in printed
    assert "24 candidates, 2 graphs, one per distance" in printed
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * (2 + 2 * 2)
    best = max(rows, key=lambda row: float(row["average_precision"]))
    assert f"{float(best['average_precision']):.4f}" in printed


def test_only_the_training_part_is_used(ask, tmp_path):
    made = nl.datasets.make_local_labels(120, 4, 5, random_state=0)
    path = tmp_path / "made.npz"
    nl.datasets.save(made, path)
    options = ("--k", "1-9", "--json")
    own = json.loads(ask("tune", path, *options))
    assert (own["part"], own["items"]) == ("train", int(made.train.sum()))
    again = json.loads(ask("tune", path, *options, "--part", "all"))
    assert (again["part"], again["items"]) == ("all", 120)
    official = json.loads(ask("tune", path, *options, "--split", "official"))
    assert (official["part"], official["test"]) == ("all", int((~made.train).sum()))
    warning = "the test items choose here: do not report the best score as a result"
    assert warning in ask("tune", path, "--k", "1-9", "--split", "official")
    assert len({found["results"][4]["ranking_loss"] for found in (own, again, official)}) == 3


def test_few_items_have_few_neighbors(ask, tmp_path):
    made = nl.datasets.make_local_labels(40, 3, 4, random_state=0)
    nl.datasets.save(nl.datasets.Dataset(made.X, made.Y), tmp_path / "few.npz")
    found = json.loads(ask("tune", tmp_path / "few.npz", "--json"))
    assert [one["k"] for one in found["results"]] == list(range(1, 11))
    own = ask("tune", tmp_path / "few.npz", "--split", "cv4", "--k", "1-20")
    assert "-0.0000" not in own
    each = json.loads(ask("tune", tmp_path / "few.npz", "--split", "cv40", "--k", 3, "--json"))
    assert each["best"]["ranking_loss"] > 0
    alone = json.loads(ask("evaluate", tmp_path / "few.npz", "--split", "cv40", "--k", 3, "--json"))
    losses = alone["results"][0]["metrics"]
    assert losses["ranking_loss"] == pytest.approx(each["best"]["ranking_loss"])


def test_the_curve_as_a_figure(ask, here, tmp_path):
    pytest.importorskip("matplotlib")
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        target = tmp_path / f"curve{suffix}"
        assert f"wrote {target}" in ask("tune", "songs.csv", "--k", "1-5", "--figure", target)
        assert target.read_bytes().startswith(start)


def test_advice_on_few_rows(answer, tmp_path):
    (tmp_path / "two.csv").write_text("x,tags\n1,a\n2,a\n")
    assert "with 2 rows: use folds\n" in answer("tune", tmp_path / "two.csv")[2]


def test_the_command_that_fits_the_best(ask, here, tmp_path, monkeypatch):
    """It is accepted, and fits the best model."""
    path = tmp_path / "my songs.csv"
    path.write_text((here / "songs.csv").read_text().replace("tags", "all moods"))
    monkeypatch.chdir(tmp_path)
    options = ("--tags", "all moods", "--ignore", "sp*", "tempo", "--scale", "minmax")
    candidates = ("--algorithm", "DMLkNN", "--k", "4-6", "--distance", "cosine")
    grid = ("--grid", "smoothing=0.5,2", "--seed", "3")
    command = ("tune", path, *options, *candidates, *grid)
    told = json.loads(ask(*command, "--json"))
    assert ask(*command).splitlines()[-2:] == ["to fit the best:", told["fit_command"]]
    best, words = told["best"], shlex.split(told["fit_command"])
    assert words[:2] == ["nearlabel", "fit"]
    fitted = json.loads(ask(*words[1:], "--json"))
    assert (fitted["model"], fitted["features"]) == ("my songs.model", 4)
    for key in ("algorithm", "k", "distance"):
        assert fitted[key] == best[key]
    assert best["parameters"].items() <= fitted["parameters"].items()
    assert fitted["scale"] == "minmax"


def test_the_command_uses_only_the_training_items(ask, here, tmp_path):
    rows = Path("songs.csv").read_text().splitlines()
    parts = [f"{row},train" for row in rows[1:100]] + [f"{row},test" for row in rows[100:150]]
    (tmp_path / "parts.csv").write_text("\n".join([f"{rows[0]},split", *parts]))
    assert "--part train" in ask("tune", tmp_path / "parts.csv", "--k", "3-4")
    assert "--part" not in ask("tune", "songs.csv", "--k", "3-4")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--k", "0"), ["--k", "'0'"]),
        (("--k", "5-2"), ["--k", "'5-2'"]),
        (("--k", "1-99999999"), ["--k", "'1-99999999'"]),
        (("--grid", "smoothing"), ["NAME=VALUE,VALUE", "'smoothing'"]),
        (("--grid", "smoothing=1,"), ["NAME=VALUE,VALUE", "'smoothing=1,'"]),
        (("--grid", "n_clusters=2"), ["n_clusters=2", "MLkNN"]),
        (("--grid", "n_neighbors=2"), ["n_neighbors=2", "MLkNN"]),
        (("--grid", "smoothing=-1"), ["--grid smoothing", "-1"]),
        (("--figure", "curve.gif"), [".png, .svg, .pdf", "'curve.gif'"]),
        (("--figure", "nowhere/curve.png"), ["nowhere/curve.png"]),
        (("--metric", "f1"), ["'f1'", "'micro_f1'"]),
        (("--split", "half"), ["'half'", "'loo'"]),
        (("--part", "train"), ["train"]),
    ],
)
def test_invalid_combinations(fail, here, options, parts):
    message = fail("tune", "songs.csv", *options)
    assert options[0].strip("-") in message
    assert all(part in message for part in parts), message


def test_compare_tuned(ask, fail, here, tmp_path):
    options = ("--tune", "--k", "2", "6", "--algorithm", "MLkNN", "LAMLkNN", "--split", "cv3")
    options += ("--distance", "euclidean")
    target = tmp_path / "all.csv"
    printed = ask("compare", "songs.csv", *options, "-o", target)
    assert "2 algorithms, tuned by ranking_loss on the training items" in printed
    assert "chosen on the training items, in how many parts:" in printed
    found = json.loads(ask("compare", "songs.csv", *options, "--json"))
    assert found["tuned"] == "ranking_loss"
    for one in found["results"]:
        assert len(one["chosen"]) == 3
        assert {choice["n_neighbors"] for choice in one["chosen"]} <= {2, 6}
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert all(row["chosen"].startswith("k ") for row in rows)
    by_precision = json.loads(
        ask("compare", "songs.csv", *options, "--metric", "average_precision", "--json")
    )
    assert by_precision["tuned"] == "average_precision"
    assert "--thresholds" in fail("compare", "songs.csv", "--tune", "--thresholds")
    assert "'holdout' or 'cv10'" in fail("compare", "songs.csv", "--tune", "--split", "loo")
    for several in (("--k", "2", "3"), ("--distance", "cosine", "euclidean")):
        message = fail("compare", "songs.csv", *several)
        assert "--tune" in message
        assert several[0] in message
