"""Files of models: one safe file for a model, a pipeline around one, or a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.files import NONSENSE, FileError, read_tree, write_tree
from nearlabel.common.validation import check_integer, check_real
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import stored_array, stored_names
from nearlabel.methods.registry import METHODS, method
from nearlabel.methods.thresholds import LabelThresholds

_OWN: dict[str, Any] = {
    **{name: method(name) for name in METHODS},
    "LabelThresholds": LabelThresholds,
    "NeighborGraph": NeighborGraph,
}
# scikit-learn's scalers by their public attributes: arrays of one number a feature, or nothing.
_SCALERS = {
    "MaxAbsScaler": ("scale_", "max_abs_"),
    "MinMaxScaler": ("scale_", "min_", "data_min_", "data_max_", "data_range_"),
    "StandardScaler": ("scale_", "mean_", "var_"),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, a pipeline that ends in one, or a neighbor graph to one file.

    The file holds arrays and JSON, nothing that is executed when it is read. It is written under
    another name and renamed when it is complete.

    Parameters
    ----------
    model : estimator of nearlabel, NeighborGraph, or Pipeline
        The other steps of a pipeline may be scikit-learn's `MinMaxScaler`, `StandardScaler` and
        `MaxAbsScaler`, which can be written alone, too.
    path : path of the file
    """
    write_tree(path, _tree(model))


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path of the file
    mmap : bool, default=False
        Leave the arrays on the disk, mapped into memory and read-only: nothing is copied, and
        processes that load the same file share its memory.

    Returns
    -------
    estimator, Pipeline or NeighborGraph

    Raises
    ------
    FileError
        A ValueError, with the reason: a file of another kind, cut off, altered, or newer.

    Examples
    --------
    >>> import tempfile
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nl.MLkNN(n_neighbors=3).fit(X, y).save(f"{folder}/few.model")
    ...     model = nl.load(f"{folder}/few.model")
    >>> model.predict([[2.2, 0.4]])
    array([[1, 0]])
    """
    tree, version = read_tree(path, mmap=mmap)
    try:
        return _model(tree, version)
    except FileError as error:
        raise FileError(f"{path} {error}") from None
    except (*NONSENSE, RecursionError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise FileError(f"{path} is damaged: {reason}") from None


def _tree(model: Any) -> dict[str, Any]:
    if isinstance(model, NeighborClassifier | NeighborGraph):
        return model._tree()
    name, is_sklearns = type(model).__name__, type(model).__module__.startswith("sklearn.")
    if is_sklearns and name == "Pipeline":
        _check_steps([part for _, part in model.steps])
        return {"class": "Pipeline", "steps": [[step, _tree(part)] for step, part in model.steps]}
    if is_sklearns and name in _SCALERS:
        check_is_fitted(model)
        names = getattr(model, "feature_names_in_", np.array([])).tolist()
        return {
            "class": name,
            "parameters": _not_default(model),
            "features": model.n_features_in_,
            "feature_names": names or None,
            "seen": np.asarray(model.n_samples_seen_, dtype=np.int64),
            **{key: getattr(model, key, None) for key in _SCALERS[name]},
        }
    raise TypeError(
        f"a {name} cannot be written to a file; estimators of nearlabel can, graphs, and "
        f"pipelines of {', '.join(_SCALERS)} and these (joblib or pickle keep any object)"
    )


def _model(tree: Mapping[str, Any], version: int) -> Any:
    name = tree["class"]
    if name in _OWN:
        return _OWN[name]._from_tree(tree, version)
    if name in _SCALERS:
        return _scaler(tree)
    if name == "Pipeline":
        from sklearn.pipeline import Pipeline

        steps = [(str(step), _model(part, version)) for step, part in tree["steps"]]
        _check_steps([part for _, part in steps])
        return Pipeline(steps)
    raise FileError(f"holds a {name!r}, which this version of nearlabel does not know")


def _check_steps(parts: list[Any]) -> None:
    *first, last = parts or [None]
    if not isinstance(last, NeighborClassifier) or not all(
        type(p).__name__ in _SCALERS for p in first
    ):
        raise TypeError(
            f"a pipeline in a file has scalers ({', '.join(_SCALERS)}) and ends in an estimator of "
            f"nearlabel; this one has {', '.join(type(part).__name__ for part in parts) or 'none'}"
        )


def _not_default(scaler: Any) -> dict[str, Any]:
    """Parameters that are not the default ones: not every scikit-learn knows all of them."""
    usual = type(scaler)().get_params()
    return {key: value for key, value in scaler.get_params().items() if value != usual[key]}


def _scaler(tree: Mapping[str, Any]) -> Any:
    from sklearn import preprocessing

    parameters = dict(tree["parameters"])
    if "feature_range" in parameters:
        low, high = parameters["feature_range"] = tuple(parameters["feature_range"])
        if not check_real(low, "low", low=-1e300) < check_real(high, "high", low=-1e300):
            raise ValueError("its feature_range is empty")
    if not all(isinstance(value, bool | tuple) for value in parameters.values()):
        raise TypeError("its scaler has parameters of another type")
    kind = getattr(preprocessing, tree["class"])
    unknown = sorted(parameters.keys() - kind().get_params().keys())
    if unknown:
        raise FileError(f"needs another scikit-learn: this one's scaler has no {unknown[0]!r}")
    scaler = kind(**parameters)
    scaler.n_features_in_ = check_integer(tree["features"], "features", low=1)
    scaler.n_samples_seen_ = tree["seen"][()]
    for key in _SCALERS[tree["class"]]:
        if tree[key] is None:
            setattr(scaler, key, None)
            continue
        values = stored_array(tree[key], key, "f", 1)
        if values.shape != (scaler.n_features_in_,) or not np.isfinite(values).all():
            raise ValueError(f"its {key} are not {scaler.n_features_in_} finite numbers")
        setattr(scaler, key, values)
    one = np.zeros((1, scaler.n_features_in_))
    with np.errstate(all="ignore"):
        scaled = scaler.transform(one)
    if not np.isfinite(scaled).all():
        raise ValueError("the parts of its scaler do not fit together")
    names = stored_names(tree["feature_names"], scaler.n_features_in_)
    if names is not None:
        scaler.feature_names_in_ = names.astype(object)
    return scaler
