"""Count changes and updated tables, compared with tables of a new graph."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from living_rows import LivingRows, histories

from nearlabel.labels import count_changes as changes_module
from nearlabel.labels import living_histograms
from nearlabel.labels.count_changes import CountChanges, count_changes
from nearlabel.labels.histograms import label_histograms
from nearlabel.labels.living_histograms import LivingHistograms

pytestmark = pytest.mark.engines

NAMES = ("n", "totals", "start", "with_label", "without_label")


def changes_between(before, after, k, rng, n_jobs=1):
    """The changes of remaining, new and removed rows, one after the other."""
    old, new = before.heads(k), after.heads(k)
    labels = before.labels(), after.labels()
    n, q = before.Y.shape
    relabelled = np.flatnonzero(
        (after.Y[:n, :q] != before.Y).any(axis=1) | after.Y[:n, q:].any(axis=1)
    )
    found = []
    for rows, was_there, is_there in (
        (sorted(old.keys() & new.keys()), True, True),
        (sorted(new.keys() - old.keys()), False, True),
        (sorted(old.keys() - new.keys()), True, False),
    ):
        rows = rng.permutation(np.array(rows, np.int64))
        near = [
            np.array([heads[row] for row in rows], np.int32).reshape(-1, k) if there else None
            for heads, there in ((old, was_there), (new, is_there))
        ]
        found += count_changes(rows, *near, *labels, relabelled=relabelled, n_jobs=n_jobs)
    return CountChanges.joined(found)


def fresh(rows, k, groups=1):
    """Tables of a new fit; groups are given by place."""
    graph, Y = rows.fresh(k)
    if groups == 1:
        return label_histograms(graph, Y)
    group = np.flatnonzero(rows.alive) % groups
    return label_histograms(graph, Y, group=group, groups=groups)


def sizes(rows, groups):
    return np.bincount(np.flatnonzero(rows.alive) % groups, minlength=groups)


def assert_same(ours, true):
    for name in NAMES:
        mine, theirs = getattr(ours, name), getattr(true, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert ours.groups == true.groups


def answers(tables, k):
    """All results of the tables."""
    q, groups = tables.q, tables.groups
    totals = tables.at_0()[1].reshape(groups, q).sum(axis=0)
    group, label, count = (
        index.ravel() for index in np.meshgrid(*map(np.arange, (groups, q, k + 1)), indexing="ij")
    )
    inside = count <= np.minimum(totals[label], k)
    asked = label[inside], count[inside]
    return [
        *tables.counts(*asked, group[inside]),
        *(tables.counts(*asked) if groups == 1 else ()),
        *tables.counts(0, 0),
        *tables.at_0(),
        *tables.compacted().dense(k),
    ]


def assert_same_answers(ours, true):
    for mine, theirs in zip(ours, true, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert np.shape(mine) == np.shape(theirs)


@given(histories(least=5), st.integers(1, 4), st.integers(1, 2))
def test_changes_lead_from_the_tables_before_to_those_after(states, k, n_jobs):
    rng = np.random.default_rng(0)
    for before, after in pairwise(states):
        changes = changes_between(before, after, k, rng, n_jobs)
        n, q = len(after.x), after.Y.shape[1]
        where = np.zeros((n, q, 2, k + 1), np.int64)  # of each row, as if all had been at 0
        np.add.at(where, (changes.row, changes.label, changes.own, changes.count), changes.change)
        true = np.zeros_like(where)
        for rows, sign in ((before, -1), (after, 1)):
            wide = np.pad(rows.Y, ((0, 0), (0, q - rows.Y.shape[1])))
            heads = rows.heads(k)
            for row in range(n):
                near = heads.get(row, [])
                own = wide[row] if near else np.zeros(q, int)
                true[row, np.arange(q), own, wide[near].sum(axis=0)] += sign
        np.testing.assert_array_equal(where, true)
        # Only changes are reported, each as two entries: leaving a cell, then entering one.
        assert np.abs(where).sum() == len(changes.label)
        assert np.all(changes.label[::2] == changes.label[1::2])
        assert np.all(changes.row[::2] == changes.row[1::2])


@given(
    histories(least=5),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 7, 2**20]),
    st.sampled_from([2, 4, 2**20]),
    st.integers(1, 2),
)
def test_updated_tables_equal_new_ones(states, k, groups, cells, at_once, n_jobs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(living_histograms, "_CELLS_AT_ONCE", cells)
        patch.setattr(living_histograms, "_ENTRIES_AT_ONCE", at_once)
        rng = np.random.default_rng(0)
        before = states[0]
        living = LivingHistograms.of(fresh(before, k, groups), before.Y.shape[1], k, groups)
        known = [(living, answers(living, k))]
        for after in states[1:]:
            changes = changes_between(before, after, k, rng)
            q = after.Y.shape[1]
            group = None if groups == 1 else changes.row % groups
            living = living.changed([changes], sizes(after, groups), q, group, n_jobs=n_jobs)
            true = fresh(after, k, groups)
            assert_same(living.compacted(), true)
            known.append((living, answers(living, k)))
            assert_same_answers(known[-1][1], answers(true, k))
            before = after
        for state, answer in known:  # older states have not changed
            assert_same_answers(answers(state, k), answer)
            assert_same(copy.deepcopy(state).compacted(), state.compacted())


def test_a_change_shares_all_tables_but_those_it_touches():
    rng = np.random.default_rng(0)
    n, q, k = 60, 1000, 3
    rows = LivingRows(rng.integers(0, 1000, n), rng.random((n, q)) < 0.05)
    living = LivingHistograms.of(fresh(rows, k), q, k)
    pools = 1
    for _ in range(60):
        after = rows.relabelled(rng.integers(0, n, 1), rng.random((1, q)) < 0.01)
        changes = changes_between(rows, after, k, rng)
        state = living.changed([changes], np.array([n]), q)
        if state.pool is living.pool:
            moved = np.flatnonzero(state.start[0] != living.start[0])
            assert set(moved.tolist()) == set(changes.label.tolist())
        pools += state.pool is not living.pool
        assert len(state.pool.cells) <= 2 * state.room.sum()
        rows, living = after, state
    assert_same(living.compacted(), fresh(rows, k))
    assert 1 < pools < 20


def test_changes_do_not_depend_on_the_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    rows = LivingRows(rng.integers(0, 30, 50), rng.random((50, 5)) < 0.3)
    after = rows.added(rng.integers(0, 30, 20), rng.random((20, 6)) < 0.3)
    whole = changes_between(rows, after, 3, np.random.default_rng(1))
    monkeypatch.setattr(changes_module, "_ROWS_AT_ONCE", 3)
    parts = changes_between(rows, after, 3, np.random.default_rng(1), n_jobs=2)
    for name in ("label", "count", "own", "rows", "entries"):
        ours, theirs = getattr(whole, name), getattr(parts, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_changes_of_no_rows():
    Y = LivingRows(np.arange(3), np.eye(3)).labels()
    none = np.zeros((0, 2), np.int32)
    for before, after in ((none, none), (None, none), (none, None)):
        (changes,) = count_changes(np.zeros(0, np.int64), before, after, Y, Y)
        assert len(changes.label) == len(changes.count) == len(changes.row) == 0


def test_another_number_of_groups_or_fewer_labels_are_refused():
    rows = LivingRows(np.arange(6), np.eye(6))
    living = LivingHistograms.of(fresh(rows, 2), 6, 2)
    change = CountChanges(*(np.array([part, part]) for part in (0, 0, 0)), np.array([0]), [2])
    living.changed([change], np.array([6]), 6)
    for n, q in (([6, 6], 6), (6, 6), ([6], 5)):
        with pytest.raises(ValueError, match="n must have 1 entries, and q must be at least 6"):
            living.changed([change], np.array(n), q)
