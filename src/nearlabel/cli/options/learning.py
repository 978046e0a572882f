"""The learning algorithm and its parameters."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from nearlabel.baselines import algorithm_registry as registry
from nearlabel.cli.options import Algorithm, Distance, Switch, Texts
from nearlabel.cli.options.preparation import usual_distance
from nearlabel.cli.options.searching import Searching

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

# Parameters of estimators that have options of their own; the others are set by --set.
_SHARED = {"n_neighbors", "per_class", "metric", "search", "n_jobs", "random_state"}


@Parameter(name="*", group=Group("Algorithm", sort_key=1))
@dataclass(frozen=True)
class Learning:
    """How labels are learned.

    Parameters
    ----------
    algorithm
        The algorithm.
    set
        Other parameters of the algorithm, such as n_clusters=10 or smoothing=0.5.
    thresholds
        Learn one threshold per label by leave-one-out F1.
    distance
        Distance between items; by default euclidean, or cosine for network features of pictures.
    """

    algorithm: Algorithm = "MLkNN"
    set: Annotated[Texts, Parameter(metavar="NAME=VALUE...")] = ()
    thresholds: Switch = False
    distance: Distance | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether the algorithm does not use neighbors."""
        return self.algorithm in registry.BASELINES

    def check_options(self, *, k: bool, searching: Searching) -> None:
        """Refuse options that the algorithm has no use for; `k` says whether --k was given."""
        given = {"--k": k, "--thresholds": self.thresholds, "--distance": self.distance}
        check_neighbor_options([self.algorithm], {**given, "--search": searching.search})

    def of(self, items: Dataset) -> Learning:
        """The same, with the default distance for items if none was given."""
        if self.is_baseline or self.distance is not None:
            return self
        return replace(self, distance=usual_distance(items))

    def model(self, k: int, shared: Tree) -> BaseEstimator:
        """An unfitted estimator, with those of the `shared` parameters that it has."""
        model = estimator(self.algorithm, k, {"metric": self.distance, **shared}, self._own)
        if not self.thresholds:
            return model
        import nearlabel as nl

        return nl.LabelThresholds(model)

    def best_model(self, shared: Tree) -> BaseEstimator:
        """An unfitted blend, which chooses everything except for parameters given by --set."""
        import nearlabel as nl

        if self.algorithm != "MLkNN" or self.thresholds:
            raise ValueError("--best chooses how to learn: leave out --algorithm and --thresholds")
        shared = {"metric": self.distance, **shared}
        return _with(nl.BlendedNeighbors(objective="micro_f1", **shared), self._own, "--set")

    @property
    def _own(self) -> Tree:
        texts = [_pair(text, "--set", "NAME=VALUE, such as n_clusters=10") for text in self.set]
        return {name: _value(text) for name, text in texts}

    def record(self, model: BaseEstimator) -> Tree:
        """What a result reports about the algorithm and its own parameters."""
        learner = getattr(model, "estimator", model)  # with thresholds, the one within
        known = learner.get_params(deep=False).items()
        return {
            "algorithm": type(learner).__name__,
            "parameters": {
                name: value for name, value in known if name not in _SHARED and value is not None
            },
            "thresholds": self.thresholds,
            "distance": self.distance,
        }

    def title(self) -> str:
        """The algorithm, for people."""
        cuts = ", one threshold per label" if self.thresholds else ""
        return f"{registry.title(self.algorithm)}{cuts}"


def check_neighbor_options(algorithms: Sequence[str], given: Mapping[str, object]) -> None:
    """Refuse options about neighbors that were given where no algorithm knows any."""
    option = next((option for option, value in given.items() if value), None)
    if option is not None and set(algorithms) <= set(registry.BASELINES):
        names = ", ".join(algorithms)
        raise ValueError(f"{option}: there are no neighbors in {names}; leave it out")


def estimator(
    algorithm: str, k: int, shared: Tree, settings: Tree, option: str = "--set"
) -> BaseEstimator:
    """An unfitted estimator with the `shared` parameters that it has, and all `settings`.

    Errors about the settings name the option that they come from.
    """
    return _with(registry.estimator(algorithm, k, **shared), settings, option)


def _with(model: BaseEstimator, settings: Tree, option: str) -> BaseEstimator:
    known = sorted(model.get_params(deep=False))
    if unknown := [name for name in settings if name not in known]:
        from nearlabel.common.messages import did_you_mean

        hint = did_you_mean(unknown[0], known)
        what = f"{type(model).__name__} has no such parameter; it has {', '.join(known)}"
        raise ValueError(f"{option} {unknown[0]}: {what}{hint}")
    try:
        model.set_params(**settings).check_parameters()
    except (TypeError, ValueError) as error:
        name = getattr(error, "argument", None)
        if settings and (name is None or name in settings):
            raise ValueError(f"{option} {error}") from None
        raise
    return model


def grid_of(texts: Sequence[str], algorithms: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """For each algorithm the values to try of the parameters it has, of text like smoothing=1,2."""
    own = {name: registry.algorithm(name)().get_params().keys() for name in algorithms}
    grids: dict[str, dict[str, list[Any]]] = {name: {} for name in algorithms}
    for text in texts:
        name, values = _pair(text, "--grid", "NAME=VALUE,VALUE, such as smoothing=0.5,1")
        having = [algorithm for algorithm in algorithms if name in own[algorithm] - _SHARED]
        if not having:
            from nearlabel.common.messages import did_you_mean

            unknown = f"{name!r} is not a parameter of {' or '.join(algorithms)} that --grid sets"
            hint = did_you_mean(name, set().union(*own.values()))
            raise ValueError(f"--grid {text!r}: {unknown}{hint}")
        for algorithm in having:
            grids[algorithm][name] = [_value(value) for value in values.split(",")]
    return grids


def _pair(text: str, option: str, wanted: str) -> tuple[str, str]:
    """The parts before and after the = in the value of an option."""
    name, _, values = text.partition("=")
    if not name or not all(values.split(",")):
        raise ValueError(f"{option} takes {wanted}; got {text!r}")
    return name, values


def _value(text: str) -> Any:
    """The value of a text: none, true, false, a number, or the text itself."""
    try:
        return literal_eval(text.capitalize())
    except (SyntaxError, ValueError):
        return text
