"""Why an item gets its labels: the terms of each score, and the neighbors with the label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearlabel.common import notebook_tables as html
from nearlabel.common.arrays import Array, Floats, Matrix, canonical_csr, entries_at, runs
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.fitted_model import FittedModel

# Neighbors and scores of queries, and of copies of them that each lack one neighbor.
_WORK_AT_ONCE = 2**20
# In one line, or in a notebook.
_LABELS_SHOWN = 10
_VOTERS_SHOWN = 10
_TERMS_SHOWN = 6


@dataclass(frozen=True)
class VotingNeighbor:
    """A neighbor with a label.

    Attributes
    ----------
    id : int or str
        The training item.
    distance : float
    score_without : float
        The label's score if this item did not exist: the next nearest one, if any, takes its place
        among the neighbors. What was learned in fit stays the same.
    part : float
        What the item adds to the score: the score minus `score_without`.
    """

    id: int | str
    distance: float
    score_without: float
    part: float


@dataclass(frozen=True)
class LabelExplanation:
    """One label of one item.

    Attributes
    ----------
    label : int
        Column of the label.
    name : str or int
        Its name, or its column if it has none.
    score : float
    predicted : bool
        Whether `predict` gives the label to the item.
    terms : mapping of str to float
        The terms of the score, in the method's own terminology.
    neighbors : tuple of VotingNeighbor
        The neighbors with the label, nearest first.
    """

    label: int
    name: int | str
    score: float
    predicted: bool
    terms: Mapping[str, float]
    neighbors: tuple[VotingNeighbor, ...]


@dataclass(frozen=True, repr=False)
class Explanation:
    """Labels of one item, best first, each with its evidence; ``print`` shows all of it."""

    labels: tuple[LabelExplanation, ...]
    n_neighbors: int

    def __iter__(self) -> Iterator[LabelExplanation]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> LabelExplanation:
        return self.labels[place]

    def __repr__(self) -> str:
        shown = [
            f"{_mark(label)} {label.name} {label.score:.4f}"
            for label in self.labels[:_LABELS_SHOWN]
        ]
        hidden = len(self) - len(shown)
        shown += [html.left_out_text(hidden, "labels")] * bool(hidden)
        return f"Explanation({', '.join(shown)})"

    def __str__(self) -> str:
        lines = []
        for label in self.labels:
            lines.append(f"{_mark(label)} {label.name}: {label.score:.4f} ({_terms(label)})")
            voters = label.neighbors
            without = [f"{voter.score_without:.4f}" for voter in voters]
            alike = len(voters) > 1 and len(set(without)) == 1  # as where votes are only counted
            each = f"; without any one of them {without[0]}" if alike else ""
            lines.append(f"    {len(voters)} of {self.n_neighbors} neighbors carry it{each}")
            for voter, score in zip(voters, without, strict=True):
                own = "" if alike else f"; without it {score}"
                lines.append(f"    {voter.id} at {voter.distance:.4g}{own}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ["label", "score", "predicted", "made of", "neighbor", "distance", "score without"]
        numbers = {"score", "distance", "score without"}
        rows = [row for label in self.labels[:_LABELS_SHOWN] for row in _html_rows(label)]
        return html.table(
            [html.heading(name, number=name in numbers) for name in head],
            rows,
            caption=f"Explanation: labels of one item, and those of its {self.n_neighbors} "
            "neighbors that carry them",
            more=max(0, len(self) - _LABELS_SHOWN),
            things="labels",
        )


def _terms(label: LabelExplanation) -> str:
    """The terms of a score; if a blend adds up many, those that count most."""
    terms = list(label.terms.items())
    hidden = len(terms) - _TERMS_SHOWN
    if hidden > 1:
        terms = sorted(terms, key=lambda term: -abs(term[1]))[:_TERMS_SHOWN]
    listed = ", ".join(f"{term} {value:.4g}" for term, value in terms)
    return f"{listed}, {hidden} smaller terms" if hidden > 1 else listed


def _mark(label: LabelExplanation) -> str:
    return "+" if label.predicted else "-"


def _html_rows(label: LabelExplanation) -> Iterator[list[str]]:
    """One row per neighbor with the label, nearest first; the label's own cells span them."""
    voters = [
        (str(voter.id), f"{voter.distance:.4g}", f"{voter.score_without:.4f}")
        for voter in label.neighbors[:_VOTERS_SHOWN]
    ]
    hidden = len(label.neighbors) - len(voters)
    voters += [(f"… {hidden:,} more", "", "")] * bool(hidden)
    voters = voters or [("none", "", "")]
    terms = "\n".join(f"{term} {value:.4g}" for term, value in label.terms.items())
    for place, (who, *numbers) in enumerate(voters):
        first = place == 0
        own = [
            html.cell(label.name, span=len(voters), first=True),
            html.cell(f"{label.score:.4f}", number=True, span=len(voters), first=True),
            html.cell("yes" if label.predicted else "no", span=len(voters), first=True),
            html.cell(terms, span=len(voters), first=True),
        ]
        votes = [html.cell(who, first=first)]
        votes += [html.cell(value, number=True, first=first) for value in numbers]
        yield own * first + votes


def explain(
    model: FittedModel, X: Matrix, top: int, labels: int | str | Sequence[int | str] | None = None
) -> Explanation | list[Explanation]:
    """Why an item gets its best labels, or the requested ones; a list for several items."""
    top = check_integer(top, "top", low=1)
    asked = None if labels is None else _columns(model, labels)
    c = min(top, model.items_.n_labels) if asked is None else len(asked)
    # If a method searches by itself, queries have different numbers of voters.
    rows = max(1, _WORK_AT_ONCE // _work_of_a_row(model, c)) if model.needs.graph else 1
    explanations: list[Explanation] = []

    def choose(scores: LabelScores) -> Array:
        return scores.top(top)[0] if asked is None else np.tile(asked, (len(scores), 1))

    for start in range(0, X.shape[0], rows):
        explanations += explained(model, X[start : start + rows], choose)
    return explanations[0] if len(explanations) == 1 else explanations


def _work_of_a_row(model: FittedModel, c: int) -> int:
    """The number of neighbors of a query times c labels, plus q if all labels have scores."""
    dense = model.items_.n_labels if model.needs.dense_scores else 0
    return (model.n_neighbors_ + 1) * (c + 1) + dense


def explained(
    model: FittedModel, X: Matrix, choose: Callable[[LabelScores], Array]
) -> list[Explanation]:
    """The explanations of queries: searched, scored and decided together.

    `choose` returns the columns for each query, the same number for all, shape (n, c).
    """
    graph, further = model._voters(X)
    scores = model._scores(graph, X)
    chosen = choose(scores)
    chosen_scores = scores.at(*_pairs(chosen)).reshape(chosen.shape)
    decided = canonical_csr(model._decide(scores, graph))
    predicted = entries_at(decided, *_pairs(chosen))[0].reshape(chosen.shape)
    carried, score_without = votes(model, graph, further, X, chosen)
    explanations = []
    for place in range(len(graph)):
        near, x = graph.rows(place, place + 1), X[place : place + 1]
        ids, distances = model.items_.ids(graph.indices[place]), graph.distances[place]
        labels = []
        for column, number in enumerate(chosen[place].tolist()):
            score, voted = float(chosen_scores[place, column]), carried[place, :, column]
            without = score_without[place, voted, column].tolist()
            voters = zip(ids[voted].tolist(), distances[voted].tolist(), without, strict=True)
            neighbors = tuple(VotingNeighbor(*voter, score - voter[-1]) for voter in voters)
            terms = model._terms(number, len(neighbors), near, x)
            labels.append(
                LabelExplanation(
                    label=number,
                    name=model._name_of(number),
                    score=score,
                    predicted=bool(predicted[place, column]),
                    terms={"count": len(neighbors), **terms},
                    neighbors=neighbors,
                )
            )
        explanations.append(Explanation(tuple(labels), graph.k))
    return explanations


def votes(
    model: FittedModel,
    graph: NeighborGraph,
    further: NeighborGraph,
    X: Matrix,
    chosen: Array,
    rows: Array | None = None,
) -> tuple[Array, Floats]:
    """Which neighbors carry the chosen labels, and the scores of these without each of them.

    Parameters
    ----------
    model : FittedModel
    graph, further : NeighborGraph
        The k neighbors of n queries, and these with the next nearest one.
    X : matrix of shape (n, d)
    chosen : ndarray of int, shape (n, c)
        Columns.
    rows : ndarray of int, shape (n,), optional
        The training rows that the queries are, if each is treated as if it were new.

    Returns
    -------
    carried : ndarray of bool, shape (n, k, c)
    score_without : ndarray of float, shape (n, k, c)
        Known for neighbors that carry one of the labels.
    """
    carriers, of_each = model.items_.labels[graph.indices.ravel()], np.repeat(chosen, graph.k, 0)
    shape = len(graph), graph.k, chosen.shape[1]
    carried = entries_at(carriers, *_pairs(of_each))[0].reshape(shape)
    score_without = np.full(shape, np.nan)
    # They are left out a few at a time: with all training rows as neighbors there are many, each
    # with a graph of all others.
    query, place = np.nonzero(carried.any(axis=2))
    for run in runs(np.full(len(query), _work_of_a_row(model, 0)), _WORK_AT_ONCE):
        copies, left_out = query[run], further.indices[query[run], place[run]]
        if not model.needs.graph:
            scores = model._left_out_scores(further, X[copies], left_out)
        else:
            others = further.take(copies).without(left_out)
            own = None if rows is None else rows[copies]
            scores = scores_of(model, others, X[copies], own)
        labels = chosen[copies]
        score_without[copies, place[run]] = scores.at(*_pairs(labels)).reshape(labels.shape)
    return carried, score_without


def neighbors_of(model: FittedModel, X: Matrix, k: int, rows: Array | None = None) -> NeighborGraph:
    """The k nearest items of queries, or all; of training rows `rows`, each without itself."""
    items = model.items_
    if rows is None:
        return items.neighbors(X, min(k, len(items)))
    return items.left_out_neighbors(rows, k)


def scores_of(
    model: FittedModel, graph: NeighborGraph, X: Matrix, rows: Array | None = None
) -> LabelScores:
    """The scores of queries; of training rows `rows`, as if each were new."""
    return model._scores(graph, X) if rows is None else model._left_out_scores(graph, X, rows)


def _pairs(columns: Array) -> tuple[Array, Array]:
    """The row and the column of each entry of an array that has some columns for each row."""
    return np.repeat(np.arange(len(columns)), columns.shape[1]), columns.ravel()


def _columns(model: FittedModel, labels: int | str | Sequence[int | str]) -> Array:
    """Columns of labels given by name or by column; an integer is a name if tags are integers."""
    q = model.items_.n_labels
    names = [] if model.label_names_ is None else model.label_names_.tolist()
    are_numbered = any(isinstance(name, int) for name in names)
    columns = []
    for label in [labels] if isinstance(labels, int | str | np.integer) else labels:
        if isinstance(label, str) or are_numbered:
            if label not in names:
                raise ValueError(f"labels contains {label!r}, which is not the name of a label")
            columns.append(names.index(label))
        else:
            columns.append(check_integer(label, "a column of labels", low=0, high=q - 1))
    return np.array(columns, np.intp)
