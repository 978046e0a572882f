from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from nearlabel.experiments.papers.comparisons import comparisons
from nearlabel.experiments.papers.plans import plan
from nearlabel.experiments.reporting.names import p_text
from nearlabel.experiments.reporting.significance import comparison_views, order_views
from nearlabel.experiments.reporting.tables import setting_in_words, table_blocks, verdict_counts

EVIL = "<script>alert(1)</script> | *b* [a](b) & \"c\" 'd'"
EXPERIMENTS = plan().experiments
NAMES = ("LAML-kNN", "ML-kNN", "BRkNN")


def record(paper="003", table="3", dataset="emotions", algorithm="ML-kNN", **more):
    found = {
        "paper": paper,
        "table": table,
        "dataset": dataset,
        "algorithm": algorithm,
        "metric": "ranking_loss",
        "published": 0.25,
        "std": None,
        "ours": 0.2519,
        "verdict": "within std",
        "reason": None,
        "printed": "0.250",
        "ours_std": None,
        "parameters": {"n_neighbors": 8, "random_state": 0},
        "doubt": None,
    }
    return {**found, **more}


def many():
    """Cells of three methods on six data sets, one of them off and one not run."""
    cells = [
        record(
            dataset=f"set {row}",
            algorithm=name,
            published=0.2 + 0.01 * row + 0.02 * column,
            printed=f"{0.2 + 0.01 * row + 0.02 * column:.3f}",
            ours=0.2 + 0.01 * row + 0.021 * column,
            metric=metric,
        )
        for row in range(6)
        for column, name in enumerate(NAMES)
        for metric in ("ranking_loss", "one_error")
    ]
    cells[0] |= {"verdict": "off", "reason": EVIL}
    cells[1]["doubt"] = f"no whole number {EVIL}"
    nothing = {"ours": None, "verdict": "not run", "reason": "not a neighbor method"}
    return [*cells, record(dataset="mediamill", algorithm="Rank-SVM", **nothing)]


SERIES = {
    "name": "clusters_songs",
    "paper": "003",
    "figure": "1",
    "title": "Average precision against clusters",
    "label": "songs, k = 3",
    "caption": EVIL,
    "dataset": "songs",
    "setting": {"k": 3, "clusters": [1, 2, 3, 4], "scale": "minmax"},
    "x": [1, 2],
    "x_label": "clusters m",
    "log_x": False,
    "shaded": None,
    "seconds": 1.0,
    "reason": None,
    "panels": [
        {
            "metric": "average_precision",
            "curves": {"LAML-kNN": [0.4, 0.5]},
            "lines": {"ML-kNN": 0.4},
            "spread": {},
        }
    ],
}
ABSENT = {**SERIES, "name": "absent", "label": "gone", "panels": [], "reason": "no data set 'gone'"}


class Page(HTMLParser):
    """The tags, texts and attributes of a page; each tag must be closed where it was opened."""

    EMPTY = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    for package in ("matplotlib", "jinja2", "scikit_posthocs"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    paths = write_report(folder, many(), EXPERIMENTS, [SERIES, ABSENT])
    return folder, paths


def test_the_files_that_are_told_are_all_files(written):
    folder, paths = written
    assert sorted(paths) == sorted(path for path in folder.rglob("*") if path.is_file())
    assert [path.name for path in paths[:2]] == ["report.html", "report.md"]
    assert sorted(path.name for path in paths[2:]) == [
        "clusters_songs_average_precision.svg",
        "ranks_003_one_error_ours.svg",
        "ranks_003_ranking_loss_ours.svg",
    ]


def test_the_page_needs_nothing_else_and_escapes_all(written):
    text = (written[0] / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert any(EVIL in part for part in page.texts)
    assert not re.search(r"(src|href)=\"(?!data:image/svg\+xml;base64,|#)", text)
    assert "url(" not in text
    assert "@import" not in text
    pictures = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert len(pictures) == 3
    assert all(value for tag, name, value in page.attributes if (tag, name) == ("img", "alt"))


def test_the_page_tells_both_numbers_and_the_verdict(written):
    text = (written[0] / "report.html").read_text(encoding="utf-8")
    off = re.search(r'<td class="number off" title="off: [^"]*">(.*?)</td>', text).group(1)
    assert re.sub("<[^>]*>", " ", off).split() == ["0.200", "0.200", "!"]
    near = re.search(r'<td class="number within-std" title[^>]*>(.*?)</td>', text).group(1)
    assert re.sub("<[^>]*>", " ", near).split()[-1] == "~"
    doubtful = re.search(r'<span class="published">([^<]*)<span class="mark">\?</span>', text)
    assert doubtful[1] == "0.200"
    assert "<li>? doubtful, LAML-kNN · set 0 · one-error, printed 0.200: no whole number" in text
    assert "prefers-color-scheme: dark" in text
    assert "not measured, no data set &#39;gone&#39;" in text


def test_markdown(written):
    folder, _ = written
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        if line.startswith("|"):
            width = len(re.findall(r"(?<!\\)\|", line))
            if before.startswith("|"):
                assert len(re.findall(r"(?<!\\)\|", before)) == width
            else:
                assert before == ""
    text = "\n".join(lines)
    assert "<script>" not in text
    assert r"\<script\>alert(1)\</script\> \| \*b\* \[a\](b) \& " in text
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(pictures) == 3
    assert all((folder / picture).is_file() for picture in pictures)
    assert "0.200 / 0.200 !" in text
    assert "0.200? / 0.200 \\~" in text
    assert "- ? doubtful, LAML-kNN · set 0 · one-error, printed 0.200: no whole number " in text
    assert "\n\n\n" not in text


def test_what_stands_there_before_is_kept_where_writing_fails(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from nearlabel.experiments.reporting import report

    report.write_report(tmp_path, [record()], EXPERIMENTS)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) == 2
    with pytest.raises(KeyError):
        report.write_report(tmp_path, [record(verdict="unheard of")], EXPERIMENTS)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_the_same_report_is_the_same_bytes(tmp_path, written):
    from nearlabel.experiments.reporting.report import write_report

    folder, paths = written
    write_report(tmp_path, many(), EXPERIMENTS, [SERIES, ABSENT])
    for path in paths:
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_verdict_counts():
    records = [
        record(verdict="digits"),
        record(paper="004", table="1", verdict="off"),
        record(paper="004", table="1", verdict="digits"),
    ]
    assert verdict_counts(records) == [
        {"paper": "003", "title": "LAML-kNN (2018)", "counts": [1, 0, 0, 0]},
        {"paper": "004", "title": "positive-sample (2017)", "counts": [1, 0, 1, 0]},
        {"paper": "", "title": "all", "counts": [2, 0, 1, 0]},
    ]
    assert len(verdict_counts(records[:1])) == 1


def test_table_blocks():
    yahoo = {"paper": "000", "dataset": "yahoo_arts", "algorithm": "ML-KNN"}
    records = [
        record(**yahoo, table="10", metric="hamming_loss"),
        record(**yahoo, table="11", metric="one_error", std=0.01, ours_std=0.0214),
        record(metric="coverage", verdict="off", reason="a"),
        record(verdict="off", reason="a"),
        record(
            algorithm="LAML-kNN", parameters={"n_neighbors": 5, "n_clusters": 2, "rate": 0.1234567}
        ),
    ]
    first, second = table_blocks(records, EXPERIMENTS)
    # Tables with a metric each are one; their experiment tells the setting.
    assert (first["heading"], second["heading"]) == ("Tables 10, 11", "Table 3")
    assert "convention lamda" in first["setting"]
    assert first["columns"] == ["hamming loss ↓", "one-error ↓"]
    assert first["short_columns"] == ["hamming ↓", "one err ↓"]
    [row] = first["rows"]
    assert [cell["published"] for cell in row["cells"]] == ["0.250", "0.250 ± 0.010"]
    assert [cell["ours"] for cell in row["cells"]] == ["0.252", "0.252 ± 0.021"]
    assert second["columns"] == ["coverage ↓", "ranking loss ↓"]
    assert [row["parameters"] for row in second["rows"]] == ["k = 8", "k = 5, m = 2, z = 0.1235"]
    assert second["rows"][1]["cells"][0] is None
    [reason] = second["reasons"]
    assert reason["cells"] == "ML-kNN · emotions · coverage, ranking loss (2 cells)"


def test_data_that_are_not_there_are_told_once():
    nothing = {"ours": None, "verdict": "not run"}
    absent = "not in the data folder: "
    records = [
        record(dataset="enron", **nothing, reason=f"{absent}enron"),
        record(dataset="both", **nothing, reason=f"{absent}birds, enron"),
        record(dataset="mediamill", **nothing, reason="the data cannot be had"),
    ]
    [block] = table_blocks(records, EXPERIMENTS)
    assert [(one["reason"], one["cells"]) for one in block["reasons"]] == [
        (f"{absent}enron, birds", "ML-kNN · enron, both · ranking loss (2 cells)"),
        ("the data cannot be had", "ML-kNN · mediamill · ranking loss"),
    ]


def test_doubts_of_one_kind_are_told_together():
    doubt = "no whole number"
    [block] = table_blocks([record(doubt=doubt), record(metric="coverage", doubt=doubt)], [])
    assert block["doubts"] == [
        {
            "mark": "?",
            "cells": "ML-kNN · emotions · ranking loss, coverage (2 cells)",
            "printed": "0.250",
            "reason": doubt,
        }
    ]
    assert [cell["doubt"] for cell in block["rows"][0]["cells"]] == ["?", "?"]


def test_a_table_of_counts_has_a_label_a_column():
    counts = [
        record(
            table="1",
            dataset="scene",
            metric=f"count_{rows}_label",
            parameters={"n_neighbors": 7, "groups": [["a"]], "cluster": cluster, "label": label},
        )
        for cluster in (1, 2)
        for rows in ("with", "without")
        for label in ("Beach", "Field")
    ]
    [block] = table_blocks(counts, EXPERIMENTS)
    assert block["columns"] == ["Beach", "Field"]
    assert [row["parameters"] for row in block["rows"]] == [
        "cluster 1, with",
        "cluster 1, without",
        "cluster 2, with",
        "cluster 2, without",
    ]
    assert all(None not in row["cells"] for row in block["rows"])


def test_numbers_are_shown_as_they_are_judged():
    """A half goes up, as the verdict takes it; Python would print 0.062."""
    [block] = table_blocks([record(ours=0.0625, printed="0.063", verdict="digits")], EXPERIMENTS)
    assert block["rows"][0]["cells"][0]["ours"] == "0.063"
    assert block["agreement"] == "1 of 1 cells that were run agree"


def test_orders_of_the_2007_paper():
    views = {view["heading"]: view for view in order_views()}
    yeast, yahoo = views["Table 3 (yeast)"], views["Table 15 (yahoo)"]
    assert yeast["total"] == "ML-KNN (11) > ADTBoost.MH (1) > Rank-SVM (-3) > BoosTexter (-9)"
    assert yeast["total_of_cells"] == ""  # the paper does not print its folds
    assert yahoo["total"] == "ML-KNN (2) = BoosTexter (2) > ADTBoost.MH (1) > Rank-SVM (-5)"
    assert yahoo["total_of_cells"] == (
        "ML-KNN (2) = BoosTexter (2) = ADTBoost.MH (2) > Rank-SVM (-6)"
    )
    rows = {row["metric"]: row for row in yahoo["rows"]}
    assert rows["ranking loss ↓"]["of_cells"] == "ML-KNN > Rank-SVM, BoosTexter > Rank-SVM"


def test_comparisons_in_words():
    [view] = comparison_views(comparisons(many(), EXPERIMENTS))
    assert view["heading"] == "LAML-kNN (2018): Tables 3, 4"
    assert view["sources"] == ["published", "ours"]
    against = {pair["heading"]: pair for pair in view["pairs"]}
    assert list(against) == ["LAML-kNN against ML-kNN", "LAML-kNN against BRkNN"]
    pair = against["LAML-kNN against BRkNN"]
    assert pair["claims"] == [
        f"By {numbers} numbers: significantly better by ranking loss, one-error."
        for numbers in ("the published", "our")
    ]
    assert (view["too_few"], view["equal"], view["caution"]) == ("", "", "")
    won = {"datasets": 6, "outcome": "6 / 0 / 0", "p_value": "0.031", "side": "better"}
    assert pair["rows"] == [
        {
            "metric": metric,
            "tests": [{**won, "gain": "+0.0400"}, {**won, "gain": "+0.0420"}],
        }
        for metric in ("ranking loss ↓", "one-error ↓")
    ]
    assert view["ranks"][0] == {
        "metric": "ranking loss ↓",
        "source": "published",
        "p_value": "< 0.001",
        "ranks": "LAML-kNN 1.00, ML-kNN 2.00, BRkNN 3.00",
    }


def test_a_method_that_is_worse_is_told():
    """Columns turned round: what the paper proposes loses everywhere, and has no test by one."""
    turned = {"LAML-kNN": "BRkNN", "BRkNN": "LAML-kNN"}
    cells = [{**one, "algorithm": turned.get(one["algorithm"], one["algorithm"])} for one in many()]
    cells = [one for one in cells if (one["algorithm"], one["metric"]) != ("ML-kNN", "one_error")]
    [view] = comparison_views(comparisons(cells, EXPERIMENTS))
    pairs = {pair["heading"]: pair for pair in view["pairs"]}
    claims = pairs["LAML-kNN against BRkNN"]["claims"]
    assert claims[1] == "By our numbers: significantly worse by ranking loss, one-error."
    tests = {row["metric"]: row["tests"] for row in pairs["LAML-kNN against ML-kNN"]["rows"]}
    assert tests["ranking loss ↓"][0]["side"] == "worse"
    nothing = dict.fromkeys(("datasets", "outcome", "gain", "p_value"), "—")
    assert tests["one-error ↓"][0] == {**nothing, "side": ""}


def changed(records, change):
    """Records with other numbers of ours."""
    return [{**one, "ours": one["ours"] and change(one)} for one in records]


def test_what_is_not_significant_is_told():
    def noise(one):
        row, column = int(one["dataset"].split()[1]), NAMES.index(one["algorithm"])
        return 0.2 + 0.01 * ((row + column) % 3) if one["metric"] == "one_error" else one["ours"]

    [view] = comparison_views(comparisons(changed(many(), noise), EXPERIMENTS))
    assert view["pairs"][0]["claims"] == [
        "By the published numbers: significantly better by ranking loss, one-error.",
        "By our numbers: significantly better by ranking loss; "
        "no significant difference by one-error.",
    ]
    assert view["equal"] == "By our numbers, Friedman's test finds no difference by one-error."


def test_too_few_data_sets_are_told():
    some = [one for one in many() if one["dataset"] != "set 5"]
    [view] = comparison_views(comparisons(some, EXPERIMENTS))
    assert (view["pairs"], view["ranks"]) == ([], [])
    assert view["too_few"] == (
        "Too few data sets for a test, which takes 6: 5 by ranking loss, one-error."
    )
    some = [one for one in many() if (one["dataset"], one["metric"]) != ("set 5", "one_error")]
    [view] = comparison_views(comparisons(some, EXPERIMENTS))
    assert view["too_few"] == "Too few data sets for a test, which takes 6: 5 by one-error."
    assert [row["metric"] for row in view["pairs"][0]["rows"]] == ["ranking loss ↓"]


def test_diagrams_only_of_differences(tmp_path):
    for package in ("matplotlib", "jinja2", "scikit_posthocs"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    def equal(one):
        return 0.2 if one["metric"] == "one_error" else one["ours"]

    write_report(tmp_path, changed(many(), equal), EXPERIMENTS)
    names = [path.name for path in (tmp_path / "figures").iterdir()]
    assert names == ["ranks_003_ranking_loss_ours.svg"]
    for page in ("report.html", "report.md"):
        text = (tmp_path / page).read_text("utf-8").replace("&#39;", "'")
        assert "By our numbers, Friedman's test finds no difference by one-error." in text


def test_claims_stand_in_the_pages_with_their_caution(tmp_path):
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    place = {"paper": "002", "table": "2"}
    names = {"LAML-kNN": "Mallows", "ML-kNN": "ML-kNN"}
    records = [
        {**one, **place, "algorithm": names[one["algorithm"]]}
        for one in many()
        if one["algorithm"] in names
    ]
    write_report(tmp_path, records, EXPERIMENTS)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "(docs/errata.md#scaling-that-differs)</p>" in text
    assert "Mallows against ML-kNN.</strong> By the published numbers: significantly bet" in text
    write_report(tmp_path, records[:8], EXPERIMENTS)
    assert "Too few data sets for a test" in (tmp_path / "report.html").read_text("utf-8")
    assert "Too few data sets for a test" in (tmp_path / "report.md").read_text("utf-8")


def test_pictures_of_an_earlier_report_go_and_others_stay(tmp_path):
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    old = ("ranks_003_one_error_ours", "clusters_birds_average_precision", "run_time_seconds")
    kept = ("mine.svg", "ranks_of_mine.svg", "run_time_seconds.png")
    (tmp_path / "figures").mkdir()
    for name in (*(f"{one}.svg" for one in old), *kept):
        (tmp_path / "figures" / name).write_text("before")
    write_report(tmp_path, [record()], EXPERIMENTS)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(kept)


def test_texts():
    assert (p_text(None), p_text(0.0004), p_text(0.0314)) == ("—", "< 0.001", "0.031")
    setting = {"k": 3, "rates": [0.01, 0.1, 0.2, 0.5, 1.0, 10.0], "methods": ["a", "b"]}
    assert setting_in_words(setting) == "k 3; rates 0.01 … 10; methods a, b"
