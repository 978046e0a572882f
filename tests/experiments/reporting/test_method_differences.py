from dataclasses import replace

import numpy as np
import pytest

from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_experiments import setup_of, table_setups
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.reporting.method_differences import method_comparisons
from nearlabel.experiments.significance.mean_ranks import friedman, nemenyi
from nearlabel.experiments.significance.pairs import wilcoxon

NAMES = ("LAML-kNN", "ML-kNN", "BRkNN")


def compared(dataset, algorithm, published, ours, metric="ranking_loss", table="3"):
    cell = PrintedCell("wang-2018", table, dataset, algorithm, metric, repr(float(published)))
    return ComparedCell(cell, ours=ours)


def changed(one, ours=0.0, **place):
    """The same cell with another number of ours, or at another place."""
    cell = replace(one.cell, **place)
    return replace(one, cell=cell, ours=one.ours if ours == 0.0 else ours)


def made(rows, names=NAMES):
    """Cells with random numbers, and the tables that they are made of."""
    random = np.random.default_rng(3)
    published, ours = (random.random((rows, len(names))) for _ in range(2))
    cells = [
        compared(f"set {row}", name, published[row, column], ours[row, column])
        for row in range(rows)
        for column, name in enumerate(names)
    ]
    return cells, published, ours


def test_published_numbers_and_ours():
    cells, published, ours = made(7)
    found = method_comparisons(cells)
    assert [one.source for one in found] == ["published", "ours"]
    for one, values in zip(found, (published, ours), strict=True):
        assert (one.metric, one.algorithms) == ("ranking_loss", NAMES)
        assert one.datasets == tuple(f"set {row}" for row in range(7))
        assert one.friedman == friedman(values, NAMES, loss=True)
        assert one.nemenyi is None  # Friedman's test finds nothing
        assert one.setup is setup_of("wang-2018", "3")
        assert one.own == "LAML-kNN"
        assert one.pairs == {
            name: wilcoxon(values[:, 0], values[:, column], loss=True)
            for column, name in enumerate(NAMES[1:], 1)
        }


def test_pairs_of_ranks_only_where_there_is_a_difference():
    cells = [changed(one, (row % 3) + one.ours / 10) for row, one in enumerate(made(7)[0])]
    values = np.array([one.ours for one in cells]).reshape(7, 3)
    first, second = method_comparisons(cells)
    assert first.friedman.f_p_value > 0.05 > second.friedman.f_p_value
    assert (first.nemenyi, second.nemenyi) == (None, nemenyi(values, NAMES, loss=True))


def test_only_data_sets_that_have_all():
    cells, _, ours = made(7)
    cells[4] = changed(cells[4], None)  # ML-kNN on the second data set
    found = method_comparisons(cells)
    assert [len(one.datasets) for one in found] == [6, 6]
    assert found[1].friedman == friedman(np.delete(ours, 1, axis=0), NAMES, loss=True)


def test_an_algorithm_that_was_not_run_is_left_out():
    cells, published, _ = made(6)
    cells = [changed(one, None) if one.cell.algorithm == "BRkNN" else one for one in cells]
    found = method_comparisons(cells)
    assert [one.algorithms for one in found] == [NAMES[:2], NAMES[:2]]
    assert found[0].friedman is None  # two algorithms are a pair
    assert found[0].nemenyi is None
    assert found[0].pairs == {"ML-kNN": wilcoxon(published[:, 0], published[:, 1], loss=True)}


def test_published_numbers_alone():
    cells, published, _ = made(6)
    cells = [changed(one, None if one.cell.algorithm != "ML-kNN" else 0.5) for one in cells]
    [found] = method_comparisons(cells)
    assert found.source == "published"
    assert found.friedman == friedman(published, NAMES, loss=True)


@pytest.mark.parametrize(("rows", "enough"), [(1, False), (5, False), (6, True)])
def test_too_few_data_sets(rows, enough):
    """With five, even a method that always wins has a p-value of 0.0625."""
    found = method_comparisons(made(rows)[0])
    assert [len(one.datasets) for one in found] == [rows, rows]
    for one in found:
        assert bool(one.pairs) is enough
        assert bool(one.pairs) is (one.friedman is not None) is enough


def test_nothing_to_compare():
    assert method_comparisons([]) == []


def test_one_data_set_is_not_a_comparison():
    cells = [changed(one, paper="zhang-2005", table="I") for one in made(1)[0]]
    assert method_comparisons(cells) == []


def test_tables_of_an_experiment_go_together_and_others_do_not():
    first, *_ = made(8)
    for table, count in (("4", 8), ("1", 4)):
        cells = [*first[:12], *(changed(one, table=table) for one in first[12:])]
        found = method_comparisons(cells)
        assert [len(one.datasets) for one in found] == [count, count]


def test_averages_and_other_values_are_not_compared():
    [yahoo] = [one for one in table_setups() if one.average]
    place = {"paper": yahoo.paper, "table": yahoo.tables[0]}
    cells = [changed(one, **place) for one in made(6, ("a", "b", "c"))[0]]
    extra = [changed(one, dataset=yahoo.average) for one in cells[:3]]
    counts = [changed(one, metric="count_with_label") for one in cells]
    found = method_comparisons([*cells, *extra, *counts])
    assert [len(one.datasets) for one in found] == [6, 6]
