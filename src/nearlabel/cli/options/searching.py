"""Options of the neighbor search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from nearlabel.cli.options import Jobs, Search

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree


@Parameter(name="*", group=Group("Neighbor search", sort_key=1))
@dataclass(frozen=True)
class Searching:
    """How neighbors are searched.

    Parameters
    ----------
    search
        exact; approximate: nearly all neighbors in far less time; auto: approximate only if an
        exact search would take long. By default auto; predict, rank and retrieve use the search of
        the model.
    recall
        Share of the true neighbors that an approximate search should find; by default 0.99.
    jobs
        Number of threads; by default 1; -1 for all cores.
    """

    search: Search | None = None
    recall: float | None = None
    jobs: Jobs = None

    def __post_init__(self) -> None:
        if self.recall is not None and self.search != "approximate":
            raise ValueError("--recall: only with --search approximate")

    def method(self) -> Any:
        """The parameter `search` of estimators; None if --search was not given."""
        if self.recall is None:
            return self.search
        import nearlabel as nl

        return nl.InvertedLists(recall=self.recall)

    def parameters(self) -> Tree:
        """The parameters of estimators that these options set."""
        return {"search": self.method() or "auto", "n_jobs": self.jobs or 1}

    def record(self) -> Tree:
        """What a result reports about the search that was asked for."""
        return {"search": self.search or "auto", "asked_recall": self.recall}

    def title(self) -> str:
        """An approximate search, for people, if it was asked for."""
        asked = "" if self.recall is None else f" with recall {self.recall:g}"
        return f", approximate search{asked}" if self.search == "approximate" else ""
