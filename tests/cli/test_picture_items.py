"""Pictures on the command line."""

from __future__ import annotations

import json
import os
import shutil
import sys

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.features import GridMoments
from nearlabel.features.networks import sessions
from nearlabel.features.picture_files import in_parallel

pytest.importorskip("PIL")
MOMENTS = ("--features", "moments")


@pytest.fixture(scope="session")
def painted(tmp_path_factory):
    """The folder of a small picture set, and of a model of its moments."""
    folder = tmp_path_factory.mktemp("painted")
    nl.datasets.paint_scenes(40, size=(48, 32)).save(folder / "scenes")
    where = str(folder / "scenes")
    assert run(["fit", where, "-o", str(folder / "scenes.model"), *MOMENTS]) == 0
    return folder


@pytest.fixture
def scenes(painted, tmp_path, monkeypatch):
    """A copy of it, to work in."""
    shutil.copytree(painted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path / "elsewhere"))
    return tmp_path


def without_onnxruntime(monkeypatch):
    """As if it were not installed, and no earlier test had opened a network."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(sessions, "_open", {})


def test_a_newcomer_paints_measures_fits_and_asks_why(ask, fail, scenes):
    assert "20 pictures" in ask("datasets", "paint", "new", "--n", 20)
    assert "--overwrite" in fail("datasets", "paint", "new", "--n", 2)
    told = json.loads(ask("datasets", "paint", "new", "--n", 20, "--overwrite", "--json"))
    assert told["labels"] == ["desert", "mountains", "sea", "sunset", "trees"]
    printed = ask("evaluate", "new", *MOMENTS, "--metric", "average_precision")
    assert "20 items, 294 features, 5 labels" in printed
    assert "features moments, scale minmax" in printed
    assert "features moments, scale minmax" in ask("fit", "new", "-o", "new.model", *MOMENTS)
    why = ask("rank", "new.model", "new/pictures/00003.jpg", "--why", "--top", 1)
    assert why.startswith("new/pictures/00003.jpg\n")
    assert "00003.jpg" in why.partition("\n")[2]  # its own nearest neighbor


def test_a_saved_model_answers_as_a_pipeline_of_the_library(ask, scenes):
    given = nl.datasets.load_pictures("scenes")
    model = nl.make_pipeline(GridMoments(), MinMaxScaler(), nl.MLkNN(10))
    model.fit(given.pictures, given.Y, label_names=given.label_names)
    expected = model.rank(given.pictures, 2)
    for where in ("scenes", "scenes/pictures"):
        ranked = json.loads(ask("rank", "scenes.model", where, "--top", 2, "--json"))
        by_name = {one["id"].removeprefix("pictures/"): one["labels"] for one in ranked}
        assert sorted(by_name) == given.names
        for name, best in zip(given.names, expected, strict=True):
            assert [(one["label"], one["score"]) for one in by_name[name]] == list(best)


def test_several_pictures_and_folders_are_named_by_their_paths(ask, fail, scenes):
    files = ("scenes/pictures/00003.jpg", "scenes/pictures/00001.jpg")
    asked = json.loads(ask("predict", "scenes.model", *files, "scenes", "--json"))
    assert [one["id"] for one in asked[:3]] == [*files, "scenes/pictures/00000.jpg"]
    assert len(asked) == 42
    (scenes / "songs.csv").write_text("a,tags\n1,x\n2,y\n")
    ask("fit", "songs.csv", "-o", "songs.model", "--k", 1)
    assert "'scenes'" in fail("predict", "songs.model", "songs.csv", "scenes")


def test_a_picture_set_is_found_by_its_name(ask, scenes, monkeypatch):
    (scenes / "data").mkdir()
    (scenes / "scenes").rename(scenes / "data/natural")
    monkeypatch.setenv("NEARLABEL_DATA", str(scenes / "data"))
    listed = json.loads(ask("datasets", "list", "--json"))
    assert listed == [{"name": "natural", "file": str(scenes / "data/natural")}]
    assert "natural   pictures" in ask("datasets", "list")
    assert "natural: 40 items" in ask("evaluate", "natural", *MOMENTS)
    predicted = json.loads(ask("predict", "scenes.model", "natural", "--json"))
    assert [one["id"] for one in predicted][:2] == ["00000.jpg", "00001.jpg"]


def test_networks_are_compared_by_cosine_distance_unless_asked_otherwise(ask, scenes, made):
    ask("models", "get", "pplcnetv2", "--from", made[1])  # the choice of auto
    usual = json.loads(ask("evaluate", "scenes", "--json", "--split", "holdout"))
    assert usual["picture_features"] == "pplcnetv2"
    assert (usual["distance"], usual["scale"]) == ("cosine", "none")
    own = ("--distance", "euclidean", "--scale", "standard", "--features", "pplcnetv2")
    asked = json.loads(ask("evaluate", "scenes", "--json", "--split", "holdout", *own))
    assert (asked["distance"], asked["scale"]) == ("euclidean", "standard")
    compared = json.loads(ask("compare", "scenes", "--json", "--algorithm", "BRkNN"))
    assert compared["distance"] == "cosine"
    tuned = json.loads(ask("tune", "scenes", "--json", "--k", "3"))
    assert tuned["best"]["distance"] == "cosine"
    assert "--distance" not in tuned["fit_command"]
    tuned = json.loads(ask("tune", "scenes", "--json", "--k", "3", *own))
    assert "--distance euclidean --scale standard --features pplcnetv2" in tuned["fit_command"]

    ask("fit", "scenes", "-o", "own.model", "--jobs", 2)
    stored = nl.load("own.model")
    assert [type(step).__name__ for _, step in stored.steps] == ["PictureEmbedding", "MLkNN"]
    assert (stored[0].network_.name, stored[-1].metric) == ("pplcnetv2", "cosine")
    assert "00000.jpg" in ask("predict", "own.model", "scenes/pictures", "--jobs", 1)


def test_broken_files_are_named_once_and_left_out(answer, fail, scenes):
    (scenes / "scenes/pictures/00001.jpg").write_bytes(b"")
    (scenes / "scenes/pictures/00007.jpg").write_bytes(b"no picture")
    code, printed, notes = answer("evaluate", "scenes", *MOMENTS, "--json")
    told = json.loads(printed)
    assert (code, told["items"], told["skipped"]) == (0, 38, 2)
    first, second = notes.splitlines()
    assert "00001.jpg is empty; left out" in first
    assert "00007.jpg is not a picture" in second
    code, printed, notes = answer("predict", "scenes.model", "scenes/pictures", "--json")
    assert (code, notes.count("\n")) == (0, 2)
    *read, empty, other = json.loads(printed)
    assert len(read) == 38
    assert all(one["labels"] is not None and "skipped" not in one for one in read)
    assert empty == {"id": "00001.jpg", "labels": None, "skipped": "is empty"}
    assert (other["id"], other["labels"]) == ("00007.jpg", None)
    _, printed, _ = answer("rank", "scenes.model", "scenes", "-o", "out.csv", "--json")
    assert json.loads(printed) == {"output": "out.csv", "rows": 38 * 5, "skipped": 2}
    assert "is empty" in fail("predict", "scenes.model", "scenes/pictures/00001.jpg")


def test_undecodable_names_are_escaped(ask, scenes):
    (scenes / "odd").mkdir()
    try:
        shutil.copy("scenes/pictures/00001.jpg", os.fsdecode(b"odd/caf\xe9.jpg"))
    except OSError:
        pytest.skip("file names are Unicode here")
    ask("predict", "scenes.model", "odd", "-o", "odd.csv")
    assert "\ncaf\\xe9.jpg," in (scenes / "odd.csv").read_text()


def test_labels_stay_with_their_pictures_where_others_are_broken(answer, scenes):
    before = nl.datasets.load_pictures("scenes")
    (scenes / "scenes/pictures/00000.jpg").write_bytes(b"")
    assert answer("fit", "scenes", "-o", "less.model", *MOMENTS)[0] == 0
    less = nl.load("less.model")
    assert less.ids_.tolist() == before.names[1:]
    model = nl.make_pipeline(GridMoments(), MinMaxScaler(), nl.MLkNN(10))
    model.fit(before.pictures[1:], before.Y[1:])
    expected = model.predict_proba(before.pictures[1:])
    np.testing.assert_array_equal(less.predict_proba(before.pictures[1:]), expected)


@pytest.mark.parametrize("verb", ["evaluate", "tune", "compare", "fit", "predict"])
def test_every_picture_is_read_once(ask, scenes, monkeypatch, verb):
    read = []

    def noted(sources, prepare, n_jobs=None):
        return in_parallel(sources, lambda one: read.append(str(one)) or prepare(one), n_jobs)

    monkeypatch.setattr("nearlabel.features.grid_moments.in_parallel", noted)
    if verb == "predict":
        ask(verb, "scenes.model", "scenes")
    else:
        ask(verb, "scenes", *MOMENTS, *(("-o", "new.model") if verb == "fit" else ()))
    assert len(read) == len(set(read)) == 40


def test_labelled_pictures_are_added_to_a_model(ask, scenes):
    nl.datasets.paint_scenes(45, size=(48, 32)).save("more")
    told = json.loads(ask("add", "scenes.model", "more", "--skip-known", "--verify", "--json"))
    assert (told["added"], told["skipped"]) == (5, 40)
    assert told["ids"][-1] == "00044.jpg"


def test_without_a_network_there_are_moments_and_a_note(answer, scenes, monkeypatch):
    without_onnxruntime(monkeypatch)
    code, printed, note = answer("evaluate", "scenes", "--json")
    assert (code, json.loads(printed)["picture_features"]) == (0, "moments")
    assert "moments" in note
    assert "pip install 'nearlabel[pictures]'" in note
    assert note.count("\n") == 1


def test_errors_about_pictures_and_features_are_one_line(fail, scenes, monkeypatch):
    message = fail("evaluate", "scenes", "--features", "efficientnet")
    for known in ("auto", "moments", "efficientnet-lite0", "pplcnetv2", "ONNX"):
        assert known in message
    assert message.endswith("got 'efficientnet'; did you mean 'efficientnet-lite0'?\n")
    (scenes / "own.onnx").write_bytes(b"")
    assert "own.toml" in fail("fit", "scenes", "-o", "x.model", "--features", "own.onnx")
    (scenes / "songs.csv").write_text("a,tags\n1,x\n2,y\n")
    message = fail("evaluate", "songs.csv", *MOMENTS)
    assert message.startswith("nearlabel: --features moments: songs.csv ")
    assert fail("evaluate", "scenes", "--tags", "x").startswith("nearlabel: --tags: scenes ")
    assert "--id" in fail("predict", "scenes.model", "scenes", "--id", "x")
    assert "labels.csv" in fail("evaluate", "scenes/pictures")
    assert "songs.csv is not a picture" in fail("predict", "scenes.model", "songs.csv")
    (scenes / "empty").mkdir()
    assert "empty: there is no picture" in fail("predict", "scenes.model", "empty")
    assert "'nothing'" in fail("predict", "scenes.model", "nothing")
    without_onnxruntime(monkeypatch)
    message = fail("evaluate", "scenes", "--features", "efficientnet-lite0")
    assert "pip install 'nearlabel[pictures]'" in message
