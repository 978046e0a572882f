"""Other learners in a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from nearlabel.cli.options import Minutes, Switch

if TYPE_CHECKING:
    from nearlabel.cli.measuring import Measuring
    from nearlabel.datasets import Dataset
    from nearlabel.experiments import Part, SplitResult


@Parameter(name="*", group=Group("Other learners", sort_key=1))
@dataclass(frozen=True)
class Others:
    """Other learners to compare with, and how long they may take.

    Parameters
    ----------
    best
        Include the blend of 'fit --best', with everything chosen on the training items.
    others
        Include learners of scikit-learn: binary relevance, a classifier chain and label powerset
        with logistic regression, SVM, random forest, extra trees, MLP and kNN. All learners,
        including ours, are tuned on the training items. Their results are stored and not computed
        again.
    minutes
        Minutes of one core that each of --others may take, including tuning; by default 60. A
        learner that needs more is left out.
    again
        Run --others again, even if their results are stored.
    """

    best: Switch = False
    others: Switch = False
    minutes: Minutes = None
    again: Switch = False

    def __post_init__(self) -> None:
        for name in ("minutes", "again"):
            if getattr(self, name) and not self.others:
                raise ValueError(f"--{name}: only with --others")

    @property
    def names(self) -> list[str]:
        """The learners to include."""
        if not (self.best or self.others):
            return []
        from nearlabel.experiments.others.other_methods import OTHERS
        from nearlabel.experiments.others.other_results import BEST

        return [BEST, *(OTHERS if self.others else ())]

    def results(
        self, items: Dataset, parts: list[Part], scoring: Any, measuring: Measuring
    ) -> dict[str, list[SplitResult]]:
        """Their results on each part."""
        from nearlabel.cli.output import steps
        from nearlabel.experiments.others.other_results import evaluate_others
        from nearlabel.experiments.others.other_runs import CORE_HOUR

        with steps("comparing others") as progress:
            return evaluate_others(
                items,
                self.names,
                parts,
                scoring,
                impute=measuring.preparation.impute,
                convention=measuring.convention,
                at=measuring.at,
                seed=measuring.seed,
                n_jobs=measuring.searching.jobs,
                limit=CORE_HOUR if self.minutes is None else 60 * self.minutes,
                again=self.again,
                progress=progress,
            )


def learner_title(name: str) -> str:
    """The name of one of ours or of the others in print."""
    from nearlabel.baselines.algorithm_registry import title
    from nearlabel.experiments.others.other_methods import OTHERS
    from nearlabel.experiments.others.other_results import BEST

    if name in OTHERS:
        return OTHERS[name].title
    return "blend" if name == BEST else title(name)
