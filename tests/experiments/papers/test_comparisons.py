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
        assert one.nemenyi == nemenyi(values, NAMES, loss=True)
        assert set(one.pairs) == set(permutations(NAMES, 2))
        assert one.pairs["ML-kNN", "BRkNN"] == wilcoxon(values[:, 1], values[:, 2], loss=True)
        assert one.pairs["BRkNN", "ML-kNN"] == wilcoxon(values[:, 2], values[:, 1], loss=True)


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


@pytest.mark.parametrize("rows", [0, 4])
def test_too_few_data_sets(rows):
    assert comparisons(made(rows)[0], EXPERIMENTS) == []


def test_tables_of_an_experiment_go_together_and_others_do_not():
    records, *_ = made(8)
    for one in records[12:]:
        one["table"] = "4"
    assert [len(one.datasets) for one in comparisons(records, EXPERIMENTS)] == [8, 8]
    for one in records[12:]:
        one["table"] = "1"
    assert comparisons(records, EXPERIMENTS) == []


def test_averages_and_what_is_no_metric_are_not_compared():
    [yahoo] = [one for one in plan().experiments if one.average]
    records = [
        {**one, "paper": "000", "table": yahoo.tables[0]} for one in made(5, ("a", "b", "c"))[0]
    ]
    extra = [{**one, "dataset": yahoo.average} for one in records[:3]]
    counts = [{**one, "metric": "count_with_label"} for one in records]
    found = comparisons([*records, *extra, *counts], [yahoo])
    assert [len(one.datasets) for one in found] == [5, 5]
