"""Which algorithm learns, and with which parameters: options that several verbs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from nearlabel.cli.options import Distance, Several, Switch
from nearlabel.cli.search_options import Searching

# The names of nearlabel.methods.registry, written out so that help comes without loading them; a
# test holds the two equal.
TITLES = {
    "MLkNN": "ML-kNN",
    "LAMLkNN": "LAML-kNN",
    "DMLkNN": "DML-kNN",
    "MallowskNN": "Mallows kNN",
    "PositivekNN": "PositivekNN",
    "BRkNN": "BRkNN",
    "MLCWkNN": "MLC-WkNN",
    "IBLR": "IBLR-ML",
    "BalancedkNN": "BKNN",
}
Algorithm = Literal[
    "MLkNN",
    "LAMLkNN",
    "DMLkNN",
    "MallowskNN",
    "PositivekNN",
    "BRkNN",
    "MLCWkNN",
    "IBLR",
    "BalancedkNN",
]
# What other options say, and what every method has.
_SHARED = ("n_neighbors", "per_class", "metric", "search", "n_jobs", "random_state")


@Parameter(name="*", group=Group("How it learns", sort_key=1))
@dataclass(frozen=True)
class Learning:
    """How labels are learned.

    Parameters
    ----------
    algorithm
        The method.
    smoothing
        s of ML-kNN and those that count like it; by default 1.
    set
        Other parameters of the algorithm, such as n_clusters=10.
    thresholds
        Learn one cut a label by leave-one-out F1.
    distance
        Between items.
    """

    algorithm: Algorithm = "MLkNN"
    smoothing: float | None = None
    set: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = ()
    thresholds: Switch = False
    distance: Distance = "euclidean"

    def model(self, k: int, seed: int, searching: Searching) -> Any:
        """An unfitted estimator."""
        settings = dict(_setting(text) for text in self.set)
        if self.smoothing is not None:
            settings["smoothing"] = self.smoothing
        shared = {"metric": self.distance, "random_state": seed, **searching.shared()}
        return estimator(self.algorithm, k, shared, settings, thresholds=self.thresholds)

    def told(self, model: Any) -> dict[str, Any]:
        """What a result says of the algorithm."""
        return {
            "algorithm": self.algorithm,
            "parameters": own_parameters(model),
            "thresholds": self.thresholds,
            "distance": self.distance,
        }

    def title(self, model: Any) -> str:
        """The algorithm with its own parameters, for people."""
        own = [f"{name} {_shown(value)}" for name, value in own_parameters(model).items()]
        cuts = ["a cut a label"] if self.thresholds else []
        return ", ".join([TITLES[self.algorithm], *own, *cuts, self.distance])


def estimator(
    algorithm: str,
    k: int,
    shared: dict[str, Any],
    settings: dict[str, Any] | None = None,
    *,
    thresholds: bool = False,
) -> Any:
    """An unfitted estimator: of `shared` it takes what it knows, of `settings` all or none."""
    import nearlabel as nl
    from nearlabel.common.validation import check_integer
    from nearlabel.methods.registry import estimator as make

    check_integer(shared["random_state"], "--seed", low=0, high=2**32 - 1)
    made = make(algorithm, k, **shared)
    free = sorted(made.get_params().keys() - {"metric", "search", "n_jobs", "random_state"})
    for name, value in (settings or {}).items():
        if name not in free:
            raise ValueError(
                f"{algorithm} has no parameter {name!r}; it has {', '.join(free) or 'none to set'}"
            )
        made.set_params(**{name: value})
    return nl.LabelThresholds(made) if thresholds else made


def own_parameters(model: Any) -> dict[str, Any]:
    """The parameters of a method that are not those of every method."""
    method = getattr(model, "estimator", model)
    return {
        name: value
        for name, value in method.get_params(deep=False).items()
        if name not in _SHARED and value is not None
    }


def _setting(text: str) -> tuple[str, Any]:
    """A name and a value of text like n_clusters=10."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ValueError(f"--set takes NAME=VALUE, such as n_clusters=10; got {text!r}")
    return name, _value(value)


def grid_of(texts: Sequence[str], algorithms: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """For each algorithm the values to try of the parameters it has, of text like smoothing=1,2."""
    from nearlabel.methods.registry import method

    grids: dict[str, dict[str, list[Any]]] = {name: {} for name in algorithms}
    for text in texts:
        name, mark, values = text.partition("=")
        if not mark or not name or not all(values.split(",")):
            raise ValueError(
                f"--grid takes NAME=VALUE,VALUE, such as smoothing=0.5,1; got {text!r}"
            )
        having = [
            one for one in algorithms if name not in _SHARED and name in method(one)().get_params()
        ]
        if not having:
            raise ValueError(f"--grid {text}: none of {', '.join(algorithms)} has it to set")
        for one in having:
            grids[one][name] = [_value(value) for value in values.split(",")]
    return grids


def _value(value: str) -> Any:
    """What a text stands for: a word, a number, or itself."""
    words = {"none": None, "true": True, "false": False}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
