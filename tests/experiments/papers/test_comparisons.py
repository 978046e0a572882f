from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nearlabel.experiments.papers.comparisons import comparisons
from nearlabel.experiments.papers.plans import plan
from nearlabel.experiments.significance.mean_ranks import friedman, nemenyi
from nearlabel.experiments.significance.pairs import wilcoxon

EXPERIMENTS = [one for one in plan().experiments if one.paper == "003" and "3" in one.tables]
NAMES = ("LAML-kNN", "ML-kNN", "BRkNN")


def record(dataset, algorithm, published, ours, metric="ranking_loss", table="3"):
    place = {"paper": "003", "table": table, "dataset": dataset, "algorithm": algorithm}
    return {**place, "metric": metric, "published": published, "ours": ours}


def made(rows, names=NAMES):
    """Records of random numbers, and the tables that they are made of."""
    random = np.random.default_rng(3)
    published, ours = (random.random((rows, len(names))) for _ in range(2))
    records = [
        record(f"set {row}", name, published[row, column], ours[row, column])
        for row in range(rows)
        for column, name in enumerate(names)
    ]
    return records, published, ours


def test_published_numbers_and_ours():
    records, published, ours = made(7)
    found = comparisons(records, EXPERIMENTS)
    assert [one.source for one in found] == ["published", "ours"]
    for one, values in zip(found, (published, ours), strict=True):
        assert (one.metric, one.algorithms) == ("ranking_loss", NAMES)
        assert one.datasets == tuple(f"set {row}" for row in range(7))
        assert one.friedman == friedman(values, NAMES, loss=True)
        assert one.nemenyi is None  # Friedman's test finds nothing
        assert (one.paper, one.tables, one.caution) == ("003", ("3", "4"), "")
        assert set(one.pairs) == set(permutations(NAMES, 2))
        assert one.pairs["ML-kNN", "BRkNN"] == wilcoxon(values[:, 1], values[:, 2], loss=True)
        assert one.pairs["BRkNN", "ML-kNN"] == wilcoxon(values[:, 2], values[:, 1], loss=True)


def test_pairs_of_ranks_only_where_there_is_a_difference():
    records, *_ = made(7)
    for row, one in enumerate(records):
        one["ours"] = (row % 3) + one["ours"] / 10
    values = np.array([one["ours"] for one in records]).reshape(7, 3)
    first, second = comparisons(records, EXPERIMENTS)
    assert first.friedman.f_p_value > 0.05 > second.friedman.f_p_value
    assert (first.nemenyi, second.nemenyi) == (None, nemenyi(values, NAMES, loss=True))


def test_only_data_sets_that_have_all():
    records, _, ours = made(7)
    records[4]["ours"] = None  # ML-kNN on the second data set
    found = comparisons(records, EXPERIMENTS)
    assert [len(one.datasets) for one in found] == [6, 6]
    assert found[1].friedman == friedman(np.delete(ours, 1, axis=0), NAMES, loss=True)


def test_an_algorithm_that_was_not_run_is_left_out():
    records, published, _ = made(6)
    for one in records:
        if one["algorithm"] == "BRkNN":
            one["ours"] = None
    found = comparisons(records, EXPERIMENTS)
    assert [one.algorithms for one in found] == [NAMES[:2], NAMES[:2]]
    assert found[0].friedman is None  # two algorithms are a pair
    assert found[0].nemenyi is None
    assert found[0].pairs == {
        NAMES[:2]: wilcoxon(published[:, 0], published[:, 1], loss=True),
        NAMES[1::-1]: wilcoxon(published[:, 1], published[:, 0], loss=True),
    }


def test_published_numbers_alone():
    records, published, _ = made(6)
    for one in records:
        one["ours"] = None if one["algorithm"] != "ML-kNN" else 0.5
    [found] = comparisons(records, EXPERIMENTS)
    assert found.source == "published"
    assert found.friedman == friedman(published, NAMES, loss=True)


@pytest.mark.parametrize(("rows", "enough"), [(1, False), (5, False), (6, True)])
def test_too_few_data_sets(rows, enough):
    """With five, even a method that always wins has a p-value of 0.0625."""
    found = comparisons(made(rows)[0], EXPERIMENTS)
    assert [len(one.datasets) for one in found] == [rows, rows]
    for one in found:
        assert one.has_enough is enough
        assert bool(one.pairs) is (one.friedman is not None) is enough


def test_nothing_to_compare():
    assert comparisons([], EXPERIMENTS) == []


def test_one_data_set_is_no_comparison():
    (single,) = [one for one in plan().experiments if one.paper == "001"]
    records = [{**one, "paper": "001", "table": "I"} for one in made(1)[0]]
    assert comparisons(records, [single]) == []


def test_a_comparison_carries_its_caution():
    (unequal,) = [one for one in plan().experiments if one.paper == "002"]
    records = [{**one, "paper": "002", "table": "2"} for one in made(6)[0]]
    for one in comparisons(records, [unequal]):
        assert one.caution == unequal.caution
        assert one.caution.endswith("(docs/errata.md#scaling-that-differs)")


def test_tables_of_an_experiment_go_together_and_others_do_not():
    records, *_ = made(8)
    for one in records[12:]:
        one["table"] = "4"
    assert [len(one.datasets) for one in comparisons(records, EXPERIMENTS)] == [8, 8]
    for one in records[12:]:
        one["table"] = "1"
    assert [len(one.datasets) for one in comparisons(records, EXPERIMENTS)] == [4, 4]


def test_averages_and_what_is_no_metric_are_not_compared():
    [yahoo] = [one for one in plan().experiments if one.average]
    records = [
        {**one, "paper": "000", "table": yahoo.tables[0]} for one in made(6, ("a", "b", "c"))[0]
    ]
    extra = [{**one, "dataset": yahoo.average} for one in records[:3]]
    counts = [{**one, "metric": "count_with_label"} for one in records]
    found = comparisons([*records, *extra, *counts], [yahoo])
    assert [len(one.datasets) for one in found] == [6, 6]
