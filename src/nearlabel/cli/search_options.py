"""How neighbors are searched: options that several verbs share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from cyclopts import Group, Parameter

from nearlabel.cli.options import Whole


@Parameter(name="*", group=Group("How neighbors are searched", sort_key=1))
@dataclass(frozen=True)
class Searching:
    """How neighbors are searched.

    Parameters
    ----------
    search
        exact; approximate, nearly all of them in far less time;
        or auto, approximate only where exact would take long.
        By default auto (predict, rank: as the model learned).
    recall
        Share of the true neighbors that an approximate search is to find; by default 0.99.
    jobs
        Threads; -1 for all cores.
    """

    search: Literal["auto", "exact", "approximate"] | None = None
    recall: float | None = None
    jobs: Whole | None = None

    def check(self) -> None:
        """Refuse options that do not go together, before anything is read."""
        from nearlabel.common.validation import check_real

        if self.jobs == 0:
            raise ValueError("--jobs must be at least 1, or -1 for all cores; got 0")
        if self.recall is None:
            return
        if self.search != "approximate":
            raise ValueError("--recall: only together with --search approximate")
        check_real(self.recall, "--recall", low=0, high=1)

    def shared(self) -> dict[str, Any]:
        """What estimators take of these options."""
        return {"search": self._way("auto"), "n_jobs": 1 if self.jobs is None else self.jobs}

    def apply(self, model: Any) -> None:
        """Let a fitted model search in this way, as far as it was asked for."""
        if self.search is not None:
            model.search_with(self._way(self.search))
        if self.jobs is not None:
            inner = "estimator__" if hasattr(model, "estimator") else ""
            model.set_params(**{f"{inner}n_jobs": self.jobs})

    def _way(self, usual: str) -> Any:
        if self.recall is None:
            return self.search or usual
        import nearlabel as nl

        return nl.InvertedLists(recall=self.recall)

    def told(self) -> dict[str, Any]:
        """What a result says of how its neighbors were to be searched."""
        return {"search": self.search or "auto", "asked_recall": self.recall}

    def title(self) -> str:
        """An approximate search, where it was asked for, for people."""
        asked = "" if self.recall is None else f" with recall {self.recall:g}"
        return f", approximate search{asked}" if self.search == "approximate" else ""


def measured_recall(model: Any) -> dict[str, Any] | None:
    """The recall of the search that a model has learned from, where it was measured."""
    recall = model.search_recall_
    return None if recall is None else asdict(recall)
