"""The orders of Zhang and Zhou (Pattern Recognition 2007), from what they printed."""

import numpy as np
import pytest

from nearlabel.experiments.papers import printed_tables
from nearlabel.experiments.papers.printed_tables import relations
from nearlabel.experiments.significance.orders import partial_order, total_order

TABLES = {one.table: one for one in relations()}
NAMES = ("ML-KNN", "BoosTexter", "ADTBoost.MH", "Rank-SVM")
METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
DOUBTFUL = ("yahoo_society", "Rank-SVM", "average_precision")


def printed_cells(metric):
    """Tables 10 to 14: one row per problem, one column per algorithm; NaN if there is no number."""
    cells = {
        (cell.dataset, cell.algorithm): cell.published
        for cell in printed_tables.cells()
        if cell.table in TABLES["15"].cells and cell.metric == metric
    }
    problems = dict.fromkeys(name for name, _ in cells if "average" not in name)
    values = [[cells[problem, name] for name in NAMES] for problem in problems]
    return list(problems), np.array(values, dtype=float)


@pytest.mark.parametrize("table", TABLES)
def test_printed_relations_give_the_printed_total_order(table):
    printed = TABLES[table]
    order = total_order(printed.relations, NAMES)
    assert order.scores == printed.score
    assert tuple(name for place in order.places for name in place) == printed.order


def test_what_the_total_order_looks_like():
    assert str(total_order(TABLES["15"].relations, NAMES)) == (
        "ML-KNN (2) = BoosTexter (2) > ADTBoost.MH (1) > Rank-SVM (-5)"
    )


@pytest.mark.parametrize("metric", METRICS)
def test_relations_of_table_15_from_the_printed_cells(metric):
    _, values = printed_cells(metric)
    assert len(values) == 11
    expected = list(TABLES["15"].relations[metric])
    if metric == "average_precision":
        expected.append(("ADTBoost.MH", "Rank-SVM"))  # not printed: see the next test
    assert sorted(partial_order(values, NAMES, metric).relations) == sorted(expected)


def mended_cells(metric):
    """The cells, with the doubtful one replaced by the value that fits the printed mean."""
    problems, values = printed_cells(metric)
    problem, algorithm, doubtful = DOUBTFUL
    if metric == doubtful:
        values[problems.index(problem), NAMES.index(algorithm)] = 0.6055
    return values


def test_one_doubtful_cell_of_table_14():
    _, cells = printed_cells("average_precision")
    assert cells[:, 3].mean().round(4) == 0.6015  # 0.6046 is printed
    mended = mended_cells("average_precision")
    assert mended[:, 3].mean().round(4) == 0.6046
    found = partial_order(mended, NAMES, "average_precision")
    assert found.relations == (("BoosTexter", "Rank-SVM"),)
    assert round(found.pairs["ADTBoost.MH", "Rank-SVM"].p_value, 3) == 0.065


def test_the_whole_of_table_15_from_cells():
    orders = {metric: partial_order(mended_cells(metric), NAMES, metric) for metric in METRICS}
    for metric, order in orders.items():
        assert sorted(order.relations) == sorted(TABLES["15"].relations[metric])
    found = total_order({metric: order.relations for metric, order in orders.items()}, NAMES)
    assert found.scores == TABLES["15"].score


def test_gains_and_losses():
    values = [[0.5, 0.7, 0.1], [0.4, 0.7, 0.2], [0.5, 0.8, 0.1], [0.6, 0.8, 0.1]]
    losses = partial_order(values, "abc", "ranking_loss")
    gains = partial_order(values, "abc", "average_precision")
    assert losses.relations == (("a", "b"), ("c", "a"), ("c", "b"))
    assert gains.relations == (("b", "a"), ("a", "c"), ("b", "c"))
    assert str(losses) == "a > b, c > a, c > b"
    # A stricter level leaves the clearest relation.
    assert partial_order(values, "abc", "ranking_loss", level=0.001).relations == (("c", "b"),)


def test_equal_differences_make_no_relation():
    """t is not defined there, though one is better in all rows; rounding does not define it."""
    values = np.array([0.1, 0.2, 0.3])[:, None] + [0.0, 0.1, 0.0]
    order = partial_order(values, "abc", "one_error")
    assert order.relations == ()
    assert str(order) == "none"
    assert [pair.statistic for pair in order.pairs.values()] == [None, None, None]
    assert [pair.p_value for pair in order.pairs.values()] == [None, None, None]
    assert (order.pairs["a", "b"].wins, order.pairs["a", "c"].ties) == (3, 3)


def test_a_metric_that_is_missing_for_an_algorithm():
    values = [[0.1, None, 0.3], [0.2, None, 0.5], [0.1, None, 0.3]]
    order = partial_order(values, "abc", "ranking_loss")
    assert list(order.pairs) == [("a", "c")]
    assert order.relations == (("a", "c"),)


def test_impossible_orders():
    values = [[0.1, 0.2], [0.2, 0.3]]
    for arguments, message in (
        ((values, "abc", "one_error"), r"values.*3.*\(2, 2\)"),
        ((values, "ab", "two_error"), "metric.*'hamming_loss'.*'two_error'"),
        (([[0.1, 0.2]], "ab", "one_error"), "values.*1"),
        (([[0.1, 0.2], [None, 0.3]], "ab", "one_error"), "values.*'a'.* 1 of 2"),
    ):
        with pytest.raises(ValueError, match=message):
            partial_order(*arguments)
    with pytest.raises(ValueError, match="level.*0"):
        partial_order(values, "ab", "one_error", level=0)
    with pytest.raises(ValueError, match="relations.*one_error.*'a', 'b'.*'c'"):
        total_order({"one_error": [("a", "c")]}, "ab")


def test_equal_scores_share_a_place():
    order = total_order({}, ["z", "a"])
    assert order.places == (("z", "a"),)
    assert str(order) == "z (0) = a (0)"
    circle = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")]
    assert total_order({"jaccard": circle}, "abcd").places == (("a",), ("b", "c"), ("d",))
