import base64
import re

import numpy as np
import pytest
from html_pages import Page, check_needs_nothing

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from nearlabel.experiments import SplitResult
from nearlabel.experiments.reporting.comparison_report import ComparedMethod, write_comparison
from nearlabel.experiments.significance.standings import standings
from nearlabel.metrics import LabelResults

EVIL = "<script>alert(1)</script> {{7*7}} $x$ & \"c\" 'd' https://example.org/x.js"
OTHER = "<b>kNN</b>"
METRICS = ("ranking_loss", "average_precision")
FOLDS = {"ML-kNN": [0.2, 0.25, 0.3, 0.2, 0.3], OTHER: [0.3, 0.3, 0.3, 0.31, 0.29]}


def label_results(f1, names=("sea", EVIL)):
    f1 = np.array(f1)
    return LabelResults(np.array(names), np.arange(3, 3 + len(f1)), f1, f1, f1, f1, f1)


def write(path, **more):
    """Two methods that ran in five folds, and one that refused the data."""
    found = {
        name: [SplitResult({"ranking_loss": x, "average_precision": 1 - x}, 0.0) for x in values]
        for name, values in FOLDS.items()
    }
    standing = {
        metric: standings(found, metric, loss=metric == "ranking_loss") for metric in METRICS
    }
    cells = {"ranking_loss": ("*", "0.2500 ± 0.0224"), "average_precision": ("≈", "0.7500")}
    methods = [
        ComparedMethod("ML-kNN", True, cells, "0.5", None, ["k 3 (4)"], label_results([0.5, 0.25])),
        ComparedMethod(OTHER, False, cells, "2", None, [], label_results([np.nan, 0.125])),
        ComparedMethod("IBLR-ML", True, refusal=f"too large {EVIL}"),
    ]
    made = {
        "dataset": EVIL,
        "setup": {"split": f"cv5 {EVIL}"},
        "command": f"nearlabel compare {EVIL}",
        "methods": methods,
        "standings": standing,
        "parts": 5,
        "legend": ["* the best"],
    }
    write_comparison(path, **{**made, **more})


def texts(page):
    return [text.strip() for text in page.texts if text.strip()]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "songs.html"
    write(path)
    return path.read_text("utf-8")


def test_the_page_needs_nothing_else_and_escapes_all(text):
    page = Page(text)
    check_needs_nothing(text)
    assert {"script", "link", "b"}.isdisjoint(page.tags)
    assert "49" not in texts(page)
    for part in (
        f"cv5 {EVIL}",
        f"nearlabel compare {EVIL}",
        f"IBLR-ML: too large {EVIL}",
        EVIL,
        OTHER,
    ):
        assert part in texts(page)
    pictures = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert len(pictures) == 4
    assert all(value for tag, name, value in page.attributes if (tag, name) == ("img", "alt"))
    for picture in pictures:
        svg = base64.b64decode(picture.partition(",")[2]).decode()
        assert "<script" not in svg
        assert not re.search(r"<image|href=\"(?!#)", svg)


def test_contents_lead_to_all_parts(text):
    links = re.findall(r'<a href="#([a-z]+)">([^<]+)</a>', text)
    assert links == re.findall(r'<h2 id="([a-z]+)">([^<]+)</h2>', text)
    assert [place for place, _ in links] == ["setup", "results", "metrics", "choices", "labels"]


def test_cells_are_marked(text):
    cell = '<td data-column="ranking loss ↓" class="number best"><span>0.2500 ± 0.0224'
    assert f'{cell}<span class="mark">*</span>' in text
    assert 'class="number alike"><span>0.7500<span class="mark">≈</span>' in text


def test_differences_from_the_best(text):
    """The second is worse by 0.1, 0.05, 0, 0.11 and -0.01 in the five folds."""
    rows = re.findall(r"<tr><th>&lt;b&gt;kNN.*?</tr>", text)
    found = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    differences = [row for row in found if len(row) == 3]
    gaps = np.array([0.1, 0.05, 0, 0.11, -0.01])
    error = gaps.std(ddof=1) / np.sqrt(5)
    assert differences[0][:2] == [f"+{gaps.mean():.4f} ± {error:.4f}", "1 / 1 / 3"]
    assert differences[0] == differences[1]


def test_labels_with_the_most_frequent_first(text):
    part = text[text.index("<tbody>", text.index('<h2 id="labels">')) :]
    labels, values = re.findall(r"<tr><th>(.*?)</th>", part), re.findall(r"<span>([^<]+)<", part)
    assert labels[0].startswith("&lt;script&gt;")
    assert labels[1] == "sea"
    assert values == ["0.250", "0.125", "0.500", "—"]


def test_parts_without_anything_are_left_out(tmp_path):
    one = ComparedMethod("ML-kNN", True, {"micro_f1": ("*", "0.5000")}, "0.5")
    found = {"ML-kNN": [SplitResult({"micro_f1": 0.5}, 0.0)]}
    standing = {"micro_f1": standings(found, "micro_f1", loss=False)}
    path = tmp_path / "one.html"
    write(path, methods=[one], standings=standing, parts=1)
    text = path.read_text("utf-8")
    assert re.findall(r'<h2 id="([a-z]+)">', text) == ["setup", "results", "metrics"]
    assert "Left out" not in text
    assert text.count("<figure>") == 1


def test_many_metrics_and_labels_stay_within_the_page(tmp_path):
    names = [f"label {place}" for place in range(60)]
    titles = [f"method {place}" for place in range(12)]
    wanted = ["hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"]
    wanted += ["micro_f1", "macro_f1"]
    labels = label_results(np.linspace(0, 1, 60), names)
    cells = dict.fromkeys(wanted, ("", "0.5"))
    methods = [ComparedMethod(name, True, cells, "1", labels=labels) for name in titles]
    path = tmp_path / "many.html"
    none = {metric: {} for metric in wanted}
    write(path, methods=methods, standings=none)
    text = path.read_text("utf-8")
    heads = re.findall(r"<thead>(.*?)</thead>", text)
    assert [head.count("<th") for head in heads] == [7, 3, 11, 5]
    assert "the 40 most frequent of 60 labels" in text
    assert "label 59<" in text
    assert "label 19<" not in text
