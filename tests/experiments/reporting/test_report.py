import re
from dataclasses import replace

import numpy as np
import pytest
from html_pages import Page, check_needs_nothing

from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Reason, Verdict
from nearlabel.experiments.reporting.method_differences import (
    PairTest,
    comparison_views,
    method_comparisons,
    order_views,
)
from nearlabel.experiments.reporting.names import p_text
from nearlabel.experiments.reporting.tables import (
    ours_text,
    published_text,
    table_blocks,
    verdict_counts,
)

EVIL = "<script>alert(1)</script> | *b* [a](b) & \"c\" 'd'"
NAMES = ("LAML-kNN", "ML-kNN", "BRkNN")


def compared(paper="wang-2018", table="3", dataset="emotions", algorithm="ML-kNN", **more):
    """A compared cell; `more` overrides fields of the printed cell or of ours."""
    names = ("metric", "printed", "std", "doubt")
    cell = PrintedCell(
        metric="ranking_loss",
        printed="0.250",
        paper=paper,
        table=table,
        dataset=dataset,
        algorithm=algorithm,
    )
    cell = replace(cell, **{key: more.pop(key) for key in names if key in more})
    parameters = {"n_neighbors": 8, "smoothing": 1, "random_state": 0}
    ours = {"ours": 0.2519, "verdict": Verdict.CLOSE, "parameters": parameters}
    return ComparedCell(cell, **{**ours, **more})


def known(text):
    return Reason(text)


NOTHING = {"ours": None, "verdict": Verdict.NOT_RUN}


def many():
    """Cells of three methods on six data sets, one of them off and one not run."""
    cells = [
        compared(
            dataset=f"set {row}",
            algorithm=name,
            printed=f"{0.2 + 0.01 * row + 0.02 * column:.3f}",
            ours=0.2 + 0.01 * row + 0.021 * column,
            metric=metric,
        )
        for row in range(6)
        for column, name in enumerate(NAMES)
        for metric in ("ranking_loss", "one_error")
    ]
    cells[0] = replace(cells[0], verdict=Verdict.OFF, reason=known(EVIL))
    doubtful = replace(cells[1].cell, doubt=f"no whole number {EVIL}")
    cells[1] = replace(cells[1], cell=doubtful)
    reason = Reason("the data are lost")
    return [*cells, compared(dataset="mediamill", algorithm="Rank-SVM", **NOTHING, reason=reason)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    for package in ("matplotlib", "jinja2", "scikit_posthocs"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    write_report(folder, many())
    [page] = folder.iterdir()
    return page.read_text(encoding="utf-8")


def test_the_page_needs_nothing_else_and_escapes_all(written):
    page = Page(written)
    assert "script" not in page.tags
    assert any(EVIL in part for part in page.texts)
    check_needs_nothing(written)
    pictures = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert len(pictures) == 2
    assert all(value for tag, name, value in page.attributes if (tag, name) == ("img", "alt"))


def test_the_page_shows_both_numbers_and_the_verdict(written):
    off = re.search(r'<td [^>]*class="number off" title="off: [^"]*">(.*?)</td>', written).group(1)
    assert re.sub("<[^>]*>", " ", off).split() == ["0.200", "0.200", "!"]
    near = re.search(r'<td [^>]*class="number close" title[^>]*>(.*?)</td>', written).group(1)
    assert re.sub("<[^>]*>", " ", near).split()[-1] == "≈"
    doubtful = re.search(r'<span class="published">([^<]*)<span class="mark">\?</span>', written)
    assert doubtful[1] == "0.200"
    assert "<li>? doubtful, LAML-kNN · set 0 · one-error, printed 0.200: no whole number" in written
    assert "prefers-color-scheme: dark" in written


def test_an_earlier_report_is_kept_if_writing_fails(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from nearlabel.experiments.reporting import report

    report.write_report(tmp_path, [compared()])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    assert len(before) == 1
    with pytest.raises(KeyError):
        report.write_report(tmp_path, [compared(paper="unheard of")])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_the_same_report_is_the_same_bytes(tmp_path, written):
    from nearlabel.experiments.reporting.report import write_report

    write_report(tmp_path, many())
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == written


def test_verdict_counts():
    cells = [
        compared(verdict=Verdict.DIGITS),
        compared(paper="zhang-2017", table="1", verdict=Verdict.OFF),
        compared(paper="zhang-2017", table="1", verdict=Verdict.DIGITS),
    ]
    assert verdict_counts(cells) == {
        "Wang et al. (2018)": [1, 0, 0, 0, 0, 0, 0],
        "Zhang et al. (2017)": [1, 0, 0, 1, 0, 0, 0],
        "all": [2, 0, 0, 1, 0, 0, 0],
    }
    assert len(verdict_counts(cells[:1])) == 1


def test_table_blocks():
    yahoo = {"paper": "zhang-2007", "dataset": "yahoo_arts", "algorithm": "ML-KNN"}
    cells = [
        compared(**yahoo, table="10", metric="hamming_loss"),
        compared(**yahoo, table="11", metric="one_error", std="0.010", ours_std=0.0214),
        compared(metric="coverage", verdict=Verdict.OFF, reason=known("a")),
        compared(verdict=Verdict.OFF, reason=known("a")),
        compared(
            algorithm="LAML-kNN", parameters={"n_neighbors": 5, "n_clusters": 2, "rate": 0.1234567}
        ),
    ]
    first, second = table_blocks(cells)
    # Tables with a metric each are one; their setup describes how they are made.
    assert (first.heading, second.heading) == ("Tables 10, 11", "Table 3")
    assert "convention lamda" in first.description
    assert first.columns == ["hamming loss ↓", "one-error ↓"]
    assert first.short_columns == ["hamming ↓", "one err ↓"]
    [row] = first.rows
    assert [published_text(cell) for cell in row.cells] == ["0.250", "0.250 ± 0.010"]
    assert [ours_text(cell) for cell in row.cells] == ["0.252", "0.252 ± 0.021"]
    assert second.columns == ["coverage ↓", "ranking loss ↓"]
    assert [row.parameters for row in second.rows] == ["k = 8", "k = 5, m = 2, z = 0.1235"]
    assert second.rows[1].cells[0] is None
    assert second.notes == ["! off, ML-kNN · emotions · coverage, ranking loss (2 cells): a"]


def test_missing_data_are_reported_once():
    lost = Reason("not available")
    cells = [
        compared(dataset="mediamill", **NOTHING, reason=lost),
        compared(dataset="enron", **NOTHING, reason=Reason.no_data(("enron",))),
        compared(dataset="both", **NOTHING, reason=Reason.no_data(("birds", "enron"))),
    ]
    [block] = table_blocks(cells)
    assert block.notes == [
        "· not run, ML-kNN · enron, both · ranking loss (2 cells): "
        "not in the data folder: enron, birds",
        "· not run, ML-kNN · mediamill · ranking loss: not available",
    ]


def test_similar_doubts_are_reported_together():
    doubt = "no whole number"
    [block] = table_blocks([compared(doubt=doubt), compared(metric="coverage", doubt=doubt)])
    where = "ML-kNN · emotions · ranking loss, coverage (2 cells)"
    assert block.notes == [f"? doubtful, {where}, printed 0.250: {doubt}"]
    assert [cell.cell.doubt for cell in block.rows[0].cells] == [doubt, doubt]


def test_a_table_of_counts_has_one_column_per_label():
    one = compared(table="1", dataset="scene")
    counts = [
        replace(
            one,
            cell=replace(
                one.cell,
                metric=f"count_{rows}_label",
                parameters={"cluster": cluster, "label": label},
            ),
        )
        for cluster in (1, 2)
        for rows in ("with", "without")
        for label in ("Beach", "Field")
    ]
    [block] = table_blocks(counts)
    assert block.columns == ["Beach", "Field"]
    assert [row.parameters for row in block.rows] == [
        "cluster 1, with",
        "cluster 1, without",
        "cluster 2, with",
        "cluster 2, without",
    ]
    assert all(None not in row.cells for row in block.rows)


def test_numbers_are_shown_as_they_are_judged():
    """A half goes up, as the verdict takes it; Python would print 0.062."""
    cell = compared(ours=0.0625, printed="0.063", verdict=Verdict.DIGITS)
    [block] = table_blocks([cell])
    assert ours_text(block.rows[0].cells[0]) == "0.063"
    assert block.agreement == "1 of 1 cells that were run agree"


def test_orders_of_the_2007_paper():
    views = {view.heading: view for view in order_views()}
    yeast, yahoo = views["Table 3 (yeast)"], views["Table 15 (yahoo)"]
    assert yeast.sources == ["as printed"]  # the paper does not print its folds
    assert yeast.rows["total order"] == [
        "ML-KNN (11) > ADTBoost.MH (1) > Rank-SVM (-3) > BoosTexter (-9)"
    ]
    assert yahoo.sources == ["as printed", "from the printed cells"]
    assert yahoo.rows["total order"] == [
        "ML-KNN (2) = BoosTexter (2) > ADTBoost.MH (1) > Rank-SVM (-5)",
        "ML-KNN (2) = BoosTexter (2) = ADTBoost.MH (2) > Rank-SVM (-6)",
    ]
    assert yahoo.rows["ranking loss ↓"][1] == "ML-KNN > Rank-SVM, BoosTexter > Rank-SVM"


def test_orders_of_our_runs():
    """If all folds have the same order of methods, all relations are significant."""
    names = ("ML-KNN", "BoosTexter", "ADTBoost.MH", "Rank-SVM")
    noise = np.random.default_rng(0).normal(0, 0.001, (4, 10))
    cells = []
    for metric in ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"):
        for place, name in enumerate(names):
            worse = place if metric != "average_precision" else -place
            told = {"paper": "zhang-2007", "table": "2", "dataset": "yeast", "algorithm": name}
            if (metric, name) == ("ranking_loss", "ADTBoost.MH"):
                cells.append(compared(**told, **NOTHING, metric=metric, printed=None))
                continue
            cells.append(
                compared(**told, metric=metric, splits=list(0.5 + 0.1 * worse + noise[place]))
            )
    views = {view.heading: view for view in order_views(cells)}
    yeast = views["Table 3 (yeast)"]
    assert yeast.sources == ["as printed", "from our runs"]
    assert (
        yeast.rows["total order"][1]
        == "ML-KNN (14) > BoosTexter (4) > ADTBoost.MH (-4) > Rank-SVM (-14)"
    )
    assert "ADTBoost.MH" not in yeast.rows["ranking loss ↓"][1]
    assert views["Table 6 (image)"].sources == ["as printed"]
    without = [one for one in cells if one.cell.algorithm != "Rank-SVM"]
    assert order_views(without)[0].sources == ["as printed"]
    of_one = [one for one in cells if one.cell.metric == "coverage"]
    assert order_views(of_one)[0].sources == ["as printed"]


def test_comparisons_in_words():
    [view] = comparison_views(method_comparisons(many()))
    assert view.heading == "Wang et al. (2018), Tables 3, 4"
    assert (view.own, view.sources) == ("LAML-kNN", ["published", "ours"])
    assert list(view.pairs) == ["ML-kNN", "BRkNN"]
    assert (view.too_few, view.caution) == ("", "")
    tests = [PairTest("6", "6 / 0 / 0", gain, "0.031", "better") for gain in ("+0.0400", "+0.0420")]
    assert view.pairs["BRkNN"] == {"ranking loss ↓": tests, "one-error ↓": tests}
    ranks = "LAML-kNN 1.00, ML-kNN 2.00, BRkNN 3.00"
    assert view.ranks[0] == ("ranking loss ↓", "published", "< 0.001", ranks)


def test_a_worse_method_is_reported():
    """With reversed columns the proposed method loses everywhere."""
    turned = {"LAML-kNN": "BRkNN", "BRkNN": "LAML-kNN"}
    cells = [
        replace(one, cell=replace(one.cell, algorithm=turned.get(name, name)))
        for one in many()
        for name in [one.cell.algorithm]
        if (name, one.cell.metric) != ("ML-kNN", "one_error")
    ]
    [view] = comparison_views(method_comparisons(cells))
    for tests in view.pairs["BRkNN"].values():
        assert [test.side for test in tests] == ["worse", "worse"]
    tests = view.pairs["ML-kNN"]
    assert tests["ranking loss ↓"][0].side == "worse"
    assert tests["one-error ↓"][0] == PairTest("—", "—", "—", "—", "")


def changed(cells, change):
    """Cells with other numbers of ours."""
    return [replace(one, ours=one.ours and change(one)) for one in cells]


def test_insignificant_differences_are_reported():
    def noise(one):
        row, column = int(one.cell.dataset.split()[1]), NAMES.index(one.cell.algorithm)
        return 0.2 + 0.01 * ((row + column) % 3) if one.cell.metric == "one_error" else one.ours

    [view] = comparison_views(method_comparisons(changed(many(), noise)))
    sides = {
        metric: [test.side for test in tests] for metric, tests in view.pairs["ML-kNN"].items()
    }
    assert sides == {"ranking loss ↓": ["better", "better"], "one-error ↓": ["better", ""]}


def test_too_few_data_sets_are_reported():
    some = [one for one in many() if one.cell.dataset != "set 5"]
    [view] = comparison_views(method_comparisons(some))
    assert (view.pairs, view.ranks) == ({}, [])
    assert view.too_few == (
        "Too few data sets for a test, which takes 6: 5 by ranking loss, one-error."
    )
    missing = ("set 5", "one_error")
    some = [one for one in many() if (one.cell.dataset, one.cell.metric) != missing]
    [view] = comparison_views(method_comparisons(some))
    assert view.too_few == "Too few data sets for a test, which takes 6: 5 by one-error."
    assert list(view.pairs["ML-kNN"]) == ["ranking loss ↓"]


def test_diagrams_only_of_differences(tmp_path):
    for package in ("matplotlib", "jinja2", "scikit_posthocs"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    def equal(one):
        return 0.2 if one.cell.metric == "one_error" else one.ours

    write_report(tmp_path, changed(many(), equal))
    text = (tmp_path / "report.html").read_text("utf-8")
    [caption] = re.findall("<figcaption>(.*?)</figcaption>", text)
    assert "mean ranks by ranking loss over 6 data sets, our numbers" in caption


def test_claims_are_shown_with_their_caution(tmp_path):
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package)
    from nearlabel.experiments.reporting.report import write_report

    place = {"paper": "cheng-2009", "table": "2"}
    names = {"LAML-kNN": "Mallows", "ML-kNN": "ML-kNN"}
    cells = [
        replace(one, cell=replace(one.cell, **place, algorithm=names[one.cell.algorithm]))
        for one in many()
        if one.cell.algorithm in names
    ]
    write_report(tmp_path, cells)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "(docs/errata.md#scaling-that-differs)</p>" in text
    assert "<strong>Mallows against ML-kNN</strong>" in text
    assert '<td data-column="p" class="number">0.031 better</td>' in text
    write_report(tmp_path, cells[:8])
    assert "Too few data sets for a test" in (tmp_path / "report.html").read_text("utf-8")


def test_texts():
    assert (p_text(None), p_text(0.0004), p_text(0.0314)) == ("—", "< 0.001", "0.031")
