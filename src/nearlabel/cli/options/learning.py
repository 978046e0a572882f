"""The learning algorithm and its parameters."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from nearlabel.baselines import algorithm_registry as registry
from nearlabel.cli.options import Algorithm, Distance, Switch, Texts
from nearlabel.cli.options.errors import naming

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.cli.options.searching import Searching
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

# Parameters of estimators that have options of their own. The others are a method's own: --set.
OPTIONS = {
    "n_neighbors": "--k",
    "per_class": "--k",
    "metric": "--distance",
    "search": "--search",
    "n_jobs": "--jobs",
    "random_state": "--seed",
}


@Parameter(name="*", group=Group("Algorithm", sort_key=1))
@dataclass(frozen=True)
class Learning:
    """How labels are learned.

    Parameters
    ----------
    algorithm
        The algorithm.
    smoothing
        Smoothing s of ML-kNN and related methods; by default 1.
    set
        Other parameters of the algorithm, such as n_clusters=10.
    thresholds
        Learn one threshold per label by leave-one-out F1.
    distance
        Distance between items; by default euclidean, or cosine for network features of pictures.
    """

    algorithm: Algorithm = "MLkNN"
    smoothing: float | None = None
    set: Annotated[Texts, Parameter(metavar="NAME=VALUE...")] = ()
    thresholds: Switch = False
    distance: Distance | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether the algorithm does not use neighbors."""
        return self.algorithm in registry.BASELINES

    def check_options(self, *, k: bool, searching: Searching) -> None:
        """Refuse options that the algorithm has no use for; `k` says whether --k was given."""
        check_neighbor_options(
            [self.algorithm],
            {
                "--k": k,
                "--thresholds": self.thresholds,
                "--distance": self.distance is not None,
                "--search": searching.search is not None,
            },
        )

    def of(self, items: Dataset) -> Learning:
        """The same, with the default distance for items if none was given."""
        if self.is_baseline:
            return self
        from nearlabel.cli.picture_items import usual_distance

        return replace(self, distance=self.distance or usual_distance(items))

    def model(self, k: int, shared: Tree) -> BaseEstimator:
        """An unfitted estimator, with those of the `shared` parameters that it has."""
        import nearlabel as nl

        settings = self._settings()
        options = _options(settings)
        if self.smoothing is not None:
            settings["smoothing"], options["smoothing"] = self.smoothing, "--smoothing"
        shared = {"metric": self.distance, **shared}
        model = estimator(self.algorithm, k, shared, settings, options)
        return nl.LabelThresholds(model) if self.thresholds else model

    def best_model(self, shared: Tree) -> BaseEstimator:
        """An unfitted blend, which chooses everything except for parameters given by --set."""
        import nearlabel as nl

        if self.algorithm != "MLkNN" or self.thresholds or self.smoothing is not None:
            raise ValueError(
                "--best chooses how to learn: leave out --algorithm, --smoothing and --thresholds"
            )
        shared = {"metric": self.distance, **shared}
        model = nl.BlendedNeighbors(objective="micro_f1", **shared)
        settings = self._settings()
        free = sorted(model.get_params(deep=False).keys() - OPTIONS.keys())
        return _set(model, "BlendedNeighbors", free, settings, _options(settings))

    def _settings(self) -> Tree:
        """The parameters given by --set."""
        texts = dict(_pair(text, "--set", "NAME=VALUE, such as n_clusters=10") for text in self.set)
        return {name: _value(text) for name, text in texts.items()}

    def record(self, model: BaseEstimator) -> Tree:
        """What a result reports about the algorithm and its own parameters."""
        known = getattr(model, "estimator", model).get_params(deep=False).items()
        own = {name: value for name, value in known if name not in OPTIONS and value is not None}
        return {
            "algorithm": type(getattr(model, "estimator", model)).__name__,
            "parameters": own,
            "thresholds": self.thresholds,
            "distance": self.distance,
        }

    def title(self) -> str:
        """The algorithm, for people."""
        cuts = ", one threshold per label" if self.thresholds else ""
        return f"{registry.title(self.algorithm)}{cuts}"


def check_neighbor_options(algorithms: Sequence[str], given: Tree) -> None:
    """Refuse options about neighbors that were given where no algorithm knows any."""
    if not set(algorithms) <= set(registry.BASELINES):
        return
    for option, is_given in given.items():
        if is_given:
            know = "knows" if len(algorithms) == 1 else "know"
            names = ", ".join(algorithms)
            raise ValueError(f"{option}: {names} {know} no neighbors; leave it out")


def estimator(
    algorithm: str,
    k: int,
    shared: Tree,
    settings: Tree,
    options: Mapping[str, str],
) -> BaseEstimator:
    """An unfitted estimator with the `shared` parameters that it has, and all `settings`.

    `options` names the option that each setting comes from.
    """
    model = registry.estimator(algorithm, k, **shared)
    # PositivekNN also takes n_neighbors=none, which --k does not accept.
    free = sorted(name for name in model.get_params() if OPTIONS.get(name, "--k") == "--k")
    return _set(model, algorithm, free, settings, options)


def _options(settings: Tree) -> dict[str, str]:
    return {name: f"--set {name}" for name in settings}


def _set(
    model: BaseEstimator,
    algorithm: str,
    free: Sequence[str],
    settings: Tree,
    options: Mapping[str, str],
) -> BaseEstimator:
    """A model with some of its free parameters set; unknown ones are an error."""
    from nearlabel.common.messages import did_you_mean

    for name in settings:
        if name not in free:
            known = f"{algorithm} has no parameter {name!r}; it has {', '.join(free)}"
            raise ValueError(f"{options[name]}: {known}{did_you_mean(name, free)}")
    with naming(**{**OPTIONS, **options}):
        model.set_params(**settings).check_parameters()
    return model


def grid_of(texts: Sequence[str], algorithms: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """For each algorithm the values to try of the parameters it has, of text like smoothing=1,2."""
    from nearlabel.common.messages import did_you_mean

    own = {
        name: registry.algorithm(name)().get_params().keys() - OPTIONS.keys() for name in algorithms
    }
    grids: dict[str, dict[str, list[Any]]] = {name: {} for name in algorithms}
    for text in texts:
        name, values = _pair(text, "--grid", "NAME=VALUE,VALUE, such as smoothing=0.5,1")
        having = [algorithm for algorithm in algorithms if name in own[algorithm]]
        if not having:
            unknown = f"{name!r} is not a parameter of {' or '.join(algorithms)} that --grid sets"
            hint = did_you_mean(name, {parameter for each in own.values() for parameter in each})
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
