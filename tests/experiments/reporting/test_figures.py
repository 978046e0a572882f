import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nearlabel.experiments.reporting import drawing, figures
from nearlabel.experiments.significance.mean_ranks import nemenyi
from nearlabel.experiments.significance.pairs import Pair


def legend_texts(figure):
    [legend] = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def rings(axes):
    """Where the best values are marked."""
    marks = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in marks]


def test_tuning_curve():
    figure = figures.tuning_curve(
        {"a": [(1, 0.4), (2, 0.2), (4, 0.2)], "b": [(1, 0.3)]},
        "ranking_loss",
        title="songs",
    )
    [axes] = figure.axes
    # Of the two best values of a, the one with the smaller k.
    assert rings(axes) == [(2, 0.2), (1, 0.3)]
    assert [list(line.get_xdata()) for line in axes.lines[1::2]] == [[1, 2, 4], [1]]
    assert legend_texts(figure) == ["a 0.2000 (2)", "b 0.3000 (1)"]
    assert figure.legends[0].get_title().get_text() == "○ best value (at k)"
    assert axes.get_xlabel() == "neighbors k"
    assert axes.get_ylabel() == "ranking loss (lower is better)"
    assert axes.get_title("left") == "songs"


def test_the_best_of_a_gain_is_the_greatest():
    curves = {"a": [(5, 0.7), (1, 0.7)], "b": [(1, 0.1), (5, 0.6)]}
    figure = figures.tuning_curve(curves, "average_precision")
    assert rings(figure.axes[0]) == [(1, 0.7), (5, 0.6)]
    assert figure.axes[0].get_ylabel() == "average precision (higher is better)"


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_legend_hides_nothing(count):
    curves = {f"method {place}": [(1, 0.1), (2, 0.2)] for place in range(count)}
    figure = figures.tuning_curve(curves, "coverage")
    figure.draw_without_rendering()
    [legend], [axes] = figure.legends, figure.axes
    box, plot = legend.get_window_extent(), axes.get_tightbbox()
    assert box.y1 <= plot.y0 + 1
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert plot.height > figure.bbox.height / 2  # it grows, so that the curves stay legible


def test_series_can_be_distinguished_without_color():
    curves = {str(place): [(1, 0.1), (2, 0.2)] for place in range(9)}
    lines = figures.tuning_curve(curves, "coverage").axes[0].lines[1::2]  # beside the rings
    assert len({line.get_marker() for line in lines[:8]}) == 8
    assert len({line.get_color() for line in lines[:7]}) == 7
    assert len({(line.get_marker(), line.get_color()) for line in lines}) == 9


@pytest.mark.filterwarnings("error")
def test_no_values_are_said_to_be_undefined():
    figure = figures.method_values({}, "one_error")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not defined"]
    assert drawing.encoded(figure, ".svg")


def test_method_values():
    values = {"a": (0.3, 0.01), "b": (0.2, None)}
    for own, marks in (("a", ", filled: nearlabel"), ("ab", ""), ("", "")):
        axes = figures.method_values(values, "ranking_loss", own=list(own)).axes[0]
        assert axes.get_xlabel() == f"ranking loss ± standard error\n(lower is better{marks})"
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b"]  # the best on top


def test_method_gaps():
    clearly = Pair(5.0, 0.01, 0.2, 1, 9, 0, 1, error=0.04)
    hardly = Pair(1.0, 0.4, 0.1, 1, 5, 1, 4, error=0.1)
    names = {"extra trees, scikit-learn": clearly, "b": hardly}
    best = "random forest, scikit-learn"
    figure = figures.method_gaps(names, best, over="test items", title="t")
    [axes] = figure.axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["extra trees, scikit-learn", "b"]
    assert axes.get_xlabel() == (
        f"worse than {best} by\n(± standard error over test items; filled: p < 0.05)"
    )
    faces = [bars.lines[0].get_markerfacecolor() for bars in axes.containers]
    assert (faces[0] == "white", faces[1] == "white") == (False, True)
    assert [float(bars.lines[0].get_xdata()[0]) for bars in axes.containers] == [0.2, 0.1]
    figure.draw_without_rendering()
    box = axes.xaxis.label.get_window_extent()  # nothing is cut off
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(("rows", "k"), [(12, 4), (2, 3), (9, 2), (30, 9)])
def test_critical_difference(rows, k):
    pytest.importorskip("scikit_posthocs")
    values = np.random.default_rng(k).normal(size=(rows, k)) + np.arange(k)
    names = [f"method {place}" for place in range(k)]
    found = nemenyi(values, names, loss=True)
    figure = figures.critical_difference(found, title="ranking loss")
    [axes] = figure.axes
    texts = [text.get_text().strip() for text in axes.texts]
    for name, rank in zip(names, found.mean_ranks, strict=True):
        assert any(name in text and f"{rank:.2f}" in text for text in texts)
    assert f"critical difference {found.critical_difference:.2f} (level 0.05)" in texts
    bars = [line for line in axes.lines if line.get_linewidth() == 3]
    assert all((np.diff(bar.get_xdata()) >= 0).all() for bar in bars)  # always the same file
    ranks = dict(zip(names, found.mean_ranks, strict=True))
    ends = [sorted(ranks[name] for name in group) for group in found.groups]
    drawn = sorted([min(bar.get_xdata()), max(bar.get_xdata())] for bar in bars)
    assert np.allclose(drawn, sorted([group[0], group[-1]] for group in ends))
    figure.draw_without_rendering()
    for text in axes.texts:  # no text is clipped
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


CURVES = {"a": [(1, 0.1), (2, 0.2)]}


@pytest.mark.parametrize(
    ("suffix", "first"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_save(tmp_path, suffix, first):
    files = [tmp_path / f"{place}{suffix}" for place in range(2)]
    for file in files:
        drawing.save(figures.tuning_curve(CURVES, "coverage"), file)
    contents = [file.read_bytes() for file in files]
    assert contents[0].startswith(first)
    assert contents[0] == contents[1]  # no date, no random ids
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_save_writes_all_or_nothing(tmp_path, monkeypatch):
    file = tmp_path / "curve.svg"
    file.write_text("before")
    figure = figures.tuning_curve(CURVES, "coverage")
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf.*'curve\.jpeg'"):
        drawing.save(figure, tmp_path / "curve.jpeg")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(drawing, "encoded", fail)
    with pytest.raises(KeyboardInterrupt):
        drawing.save(figure, file)
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["curve.svg"]


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"need matplotlib: .*nearlabel\[report\]"):
        figures.tuning_curve(CURVES, "coverage")
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(ModuleNotFoundError, match=r"scikit-posthocs.*nearlabel\[report\]"):
        drawing.report_module("scikit_posthocs")
