"""When a stored result still holds: for the same code, data and settings."""

import pytest
from lookalikes import write_lookalikes

from nearlabel.experiments.papers import measured_experiments
from nearlabel.experiments.papers.measured_experiments import code_key, data_key, paper_results


def test_other_code_has_another_folder(tmp_path, monkeypatch):
    store = paper_results(tmp_path)
    store.add("a", {"metrics": [0.25, None]})
    code_key.cache_clear()
    monkeypatch.setattr(measured_experiments, "package_versions", lambda: {"numpy": "0.0"})
    other = paper_results(tmp_path)
    assert other.path != store.path
    assert other.get("a") is None
    monkeypatch.undo()
    code_key.cache_clear()
    assert paper_results(tmp_path).get("a") is not None


def test_the_code_is_all_that_computes(tmp_path, monkeypatch):
    """A changed source is different code, unless it only prints."""
    keys = []
    sources = ("methods.py", "cli/compare.py", "experiments/reporting/figures.py")
    for changed in (None, *sources):
        package = tmp_path / str(changed).replace("/", "-")
        for name in sources:
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("changed" if name == changed else "as it was")
        monkeypatch.setattr(measured_experiments, "_PACKAGE", package)
        code_key.cache_clear()
        keys.append(code_key())
    monkeypatch.undo()
    code_key.cache_clear()
    assert keys[0] == keys[2] == keys[3] != keys[1]


def test_a_key_changes_with_data(tmp_path, monkeypatch):
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
