"""What a model says about its answers: why a label, and which items carry it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nearlabel.common.arrays import Array, Floats


@dataclass(frozen=True)
class Voter:
    """A neighbor that carries a label.

    Attributes
    ----------
    id : int or str
        The training item.
    distance : float
    score_without : float
        The label's score if this item were not there: the next nearest one, if there is any, takes
        its place among the neighbors. What was learnt in fit stays.
    part : float
        What the item adds to the score: the score less `score_without`.
    """

    id: Any
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
        Its name, or its column where it has none.
    score : float
    predicted : bool
        Whether `predict` gives the label to the item.
    terms : mapping of str to float
        The numbers that make the score, in the method's own words.
    neighbors : tuple of Voter
        The neighbors that carry the label, nearest first.
    """

    label: int
    name: Any
    score: float
    predicted: bool
    terms: Mapping[str, float]
    neighbors: tuple[Voter, ...]


@dataclass(frozen=True)
class Explanation:
    """Labels of one item, best first, each with what speaks for it."""

    labels: tuple[LabelExplanation, ...]
    n_neighbors: int

    def __iter__(self) -> Iterator[LabelExplanation]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> LabelExplanation:
        return self.labels[place]

    def __str__(self) -> str:
        lines = []
        for label in self.labels:
            terms = ", ".join(f"{term} {value:.4g}" for term, value in label.terms.items())
            mark = "+" if label.predicted else "-"
            lines.append(f"{mark} {label.name}: {label.score:.4f} ({terms})")
            lines.append(f"    {len(label.neighbors)} of {self.n_neighbors} neighbors carry it")
            lines.extend(
                f"    {voter.id} at {voter.distance:.4g}; without it {voter.score_without:.4f}"
                for voter in label.neighbors
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class LabelGroup:
    """The nearest training items that carry one of an item's best labels.

    Attributes
    ----------
    label : int
    name : str or int
    score : float
    ids : ndarray of shape (m,)
        Items, nearest first.
    distances : ndarray of shape (m,)
    """

    label: int
    name: Any
    score: float
    ids: Array
    distances: Floats
