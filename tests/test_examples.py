"""The examples run, and their output is readable."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from nearlabel.baselines.algorithm_registry import ALGORITHMS
from nearlabel.methods.registry import METHODS

ROOT = Path(__file__).parents[1]


def test_the_code_of_the_page_on_experiments_runs():
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, "experiments.md", "exec"), names)
    assert len(blocks) == 2
    assert len(names["found"]) == 5
    assert names["search"].best_score_ > 0.5


def test_the_code_of_the_page_on_searches_runs():
    text = (ROOT / "docs" / "neighbor_search.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    assert "import faiss" in blocks[1]
    try:
        import faiss  # noqa: F401 - a dependency of the tests on Linux, and for NumPy 2
    except ImportError:
        del blocks[1]
    for block in blocks:
        names = {}
        exec(compile(block, "neighbor_search.md", "exec"), names)
        assert (names["model"].kneighbors()[0] >= 0).all()
        if "graph" in names:
            assert names["graph"].recall is None or names["graph"].recall.value > 0.9


def test_the_code_of_the_page_on_scale_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(block, "scale.md", "exec"), names)
    assert names["model"].search_recall_.value >= 0.95
    assert names["model"].search_recall_.rows == 512


def test_the_code_of_the_page_of_methods_runs():
    text = (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(block, "methods/README.md", "exec"), names)
    assert names["scores"].shape == (100, 6)
    assert names["nl"].metrics.ranking_loss(names["data"].Y[200:], names["scores"]) < 0.4
    assert ((names["scores"] == 0) | (names["scores"] == 1)).mean() > 0.5  # with many ties


@pytest.fixture
def run_example(monkeypatch):
    """Run a script of the examples that draws, with the path that it writes to."""
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def run(script, path, *more):
        monkeypatch.setattr(sys, "argv", [script, str(path), *more])
        runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")

    yield run
    pyplot.close("all")  # a script ends with its process; this one goes on


@pytest.mark.parametrize(
    "script",
    [
        "why_these_labels.py",
        "scale_figure.py",
        "collection_figure.py",
        "teaching_figure.py",
        "calibration_figure.py",
    ],
)
def test_figure(run_example, tmp_path, script):
    picture = tmp_path / "figure.png"
    run_example(script, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_stream_of_items(run_example, tmp_path, capsys):
    picture = tmp_path / "stream.png"
    run_example("stream_of_items.py", picture, "600")
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = capsys.readouterr().out
    precision = dict(re.findall(r"^([a-z ]+): average_precision ([0-9.]+)", told, re.MULTILINE))
    at_once, hourly, never = (float(value) for value in precision.values())
    assert at_once > hourly > never
    history = re.search(r"added=(\d+), forgotten=(\d+), relabelled=(\d+)\); (\d+) labels", told)
    assert all(int(count) > 0 for count in history.groups())
    assert "all agree with the vectors and labels" in told  # the living model equals a fit


def test_a_sheet_of_painted_scenes(run_example, tmp_path):
    pytest.importorskip("PIL")
    picture = tmp_path / "sheet.png"
    run_example("painted_scenes.py", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000


@pytest.mark.parametrize("words", [[], ["--help"], ["stream.txt"], ["stream.png", "many"]])
def test_a_stream_of_items_prints_its_usage_before_any_work(monkeypatch, capsys, tmp_path, words):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nearlabel.datasets.make_local_labels", None)
    monkeypatch.setattr(sys, "argv", ["stream_of_items.py", *words])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "examples" / "stream_of_items.py"), run_name="__main__")
    told = capsys.readouterr().out.strip() if words == ["--help"] else str(end.value)
    assert told.startswith("usage: python examples/stream_of_items.py PICTURE")
    assert "\n" not in told


@pytest.mark.slow  # one picture of each method; test_figure draws one
def test_figures_of_the_methods(run_example, tmp_path):
    run_example("method_figures.py", tmp_path)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in (ROOT / "docs" / "images" / "methods").iterdir()}
    assert made <= {f"{name.lower()}.png" for name in METHODS}  # those that were measured


def test_a_page_without_measurements_says_so(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run

    monkeypatch.setattr(run, "METHODS", (*METHODS, "NewkNN"))
    assert "--only methods --method NewkNN" in run.about("newknn")


def test_every_method_has_a_page():
    pages = {path.stem for path in (ROOT / "docs" / "methods").iterdir()}
    assert pages == {"README", "thresholds", *(name.lower() for name in ALGORITHMS)}


def test_documents_hold_the_numbers_of_the_result_files(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run

    documents = run.documents()
    assert len(documents) == 13 + len([*ALGORITHMS, "thresholds"])
    for path, text in documents.items():
        assert path.read_text() == text
