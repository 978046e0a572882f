"""Model files: one safe file for a model, a pipeline around one, or a graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Tree
from nearlabel.common.files import (
    FORMAT,
    NONSENSE,
    FileError,
    StoredTree,
    read_stored,
    stored_digest,
)
from nearlabel.common.journal import Journal, journal_path, read_changes, save_tree
from nearlabel.common.lazy import public_names
from nearlabel.common.mapped_arrays import checked_tree
from nearlabel.common.validation import check_choice
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.pipeline import Pipeline, make_pipeline
from nearlabel.persistence.stored_columns import (
    check_steps,
    column_transformer_from,
    column_transformer_tree,
    feature_union_from,
    feature_union_tree,
)
from nearlabel.persistence.stored_transformers import KINDS, transformer_from, transformer_tree

_PACKAGE = Path(__file__).parents[1]

OWN: dict[str, str] = {
    **public_names(str(_PACKAGE / "methods" / "__init__.py")),
    **public_names(str(_PACKAGE / "baselines" / "__init__.py")),
    "LabelThresholds": "nearlabel.methods.thresholds",
    "BlendedNeighbors": "nearlabel.blend.blended_neighbors",
    "NeighborGraph": "nearlabel.graph",
    "LabelSpace": "nearlabel.blend.label_space",
    "FilledTexts": "nearlabel.features.filled_texts",
    "GridMoments": "nearlabel.features.grid_moments",
    "PictureEmbedding": "nearlabel.features.picture_embedding",
    "FrequentWords": "nearlabel.features.words",
    "TextEmbedding": "nearlabel.features.text_embedding",
}
"""The module of each class of nearlabel that can be saved: imported where a file names the class.

The classes have `_tree()` and `_from_tree(tree, version)`.
"""
_STORABLE = ("Pipeline", "ColumnTransformer", "FeatureUnion", *KINDS)
_DEEPEST = 8  # nested transformers; scikit-learn visits each level of a pipeline three times


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, a pipeline that ends in one, or a neighbor graph to one file.

    The file contains arrays and JSON, nothing that is executed when it is read. It is written under
    a temporary name and renamed once it is complete. A journal beside the file that it replaces is
    then emptied or removed: its changes are in the new file, or belonged to another model.

    Parameters
    ----------
    model : estimator of nearlabel, NeighborGraph, Pipeline or transformer
        The other steps of a pipeline may be scikit-learn's usual preprocessing: scalers,
        `SimpleImputer`, `OneHotEncoder`, `OrdinalEncoder`, `ColumnTransformer`, `CountVectorizer`,
        `TfidfVectorizer`, `TruncatedSVD`, `PCA`, `QuantileTransformer` and the like. The error
        about any other names all that can be saved; functions cannot.
    path : path of the file
    """
    model = _chosen(model)
    learner = _learner(model)
    # No changes until it is written: what goes to a journal meanwhile would be lost.
    unchanged = learner._settled() if isinstance(learner, NeighborClassifier) else nullcontext()
    with unchanged:
        tree = _tree(model)
        _check_loads(tree)
        save_tree(path, tree, getattr(learner, "_journal", None))


def load(path: str | os.PathLike[str], *, mmap: bool = False, journal: bool = False) -> Any:
    """Read what `save` wrote, with all changes in a journal beside it.

    Parameters
    ----------
    path : path of the file
    mmap : bool, default=False
        Leave the arrays on disk, mapped into memory read-only: nothing is copied, and processes
        that load the same file share its memory. Vectors are compared with their checksums when
        they are first used, everything else at once.
    journal : bool, default=False
        Save every later change of the model: it is on disk, in the file `path` + ".journal", when
        the method that makes it returns. Only one model at a time can be loaded this way, until
        its `close()`, or the end of ``with nl.load(path, journal=True) as model:``.

    Returns
    -------
    estimator, Pipeline, transformer or NeighborGraph

    Raises
    ------
    FileError
        A ValueError, with the reason: not a model file, truncated, altered, or too new.
    BlockingIOError
        If another model was loaded with this journal and is still open.

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
    stored = read_stored(path, mmap=mmap)
    try:
        model = _model(stored.tree, stored.version)
    except FileError as error:
        raise error.of(path) from None
    except (*NONSENSE, RecursionError) as error:
        raise FileError(f"is damaged: {_reason(error)}", path) from None
    try:
        _take_up_changes(model, path, stored, journal)
    except FileError:
        if stored_digest(path) in (stored.digest, None):
            raise
    if stored_digest(path) in (stored.digest, None):
        return model
    return load(path, mmap=mmap, journal=journal)  # the file was saved again meanwhile


def _take_up_changes(
    model: BaseEstimator, path: str | os.PathLike[str], stored: StoredTree, journal: bool
) -> None:
    """Apply the changes of a journal, and attach the journal to the model if requested."""
    learner, replaces = _learner(model), stored.tree.get("replaces")
    of_file = (path, stored.digest, replaces if isinstance(replaces, str) else None)
    if not journal:
        _replay(learner, read_changes(*of_file), path)
        return
    if not hasattr(learner, "_replay"):
        raise FileError(f"holds a model that does not change: {_does_not_change(learner)}", path)
    opened, changes = Journal.create_or_open(*of_file)
    try:
        _replay(learner, changes, path)
    except BaseException:
        opened.close()
        raise
    around = _around(model)
    opened.fold = lambda changed: save(around(changed), path)
    learner._journal = opened


def _replay(learner: BaseEstimator, changes: Iterable[Tree], path: str | os.PathLike[str]) -> None:
    replay = getattr(learner, "_replay", None)
    for number, change in enumerate(changes):
        try:
            if replay is None:
                raise TypeError(_does_not_change(learner))
            replay(change)
        except NONSENSE as error:
            why = f"change {number} cannot be applied: {_reason(error)}"
            raise FileError(f"is damaged: {why}", journal_path(path)) from error


def _does_not_change(learner: BaseEstimator) -> str:
    again = "; fit it again" if hasattr(learner, "fit") else ""
    return f"{type(learner).__name__} cannot be changed{again}"


def _around(model: BaseEstimator) -> Callable[[BaseEstimator], BaseEstimator]:
    """A function that wraps a learner in the same pipeline steps as the model, if any."""
    if not isinstance(model, SklearnPipeline):
        return lambda learner: learner
    *first, (name, last) = model.steps
    inner = _around(last)
    return lambda learner: Pipeline([*first, (name, inner(learner))])


def _chosen(model: object) -> BaseEstimator:
    """What is saved for a model: itself, or the pipeline that `AutoNeighbors` has chosen."""
    if isinstance(model, SklearnPipeline) and hasattr(model.steps[-1][1], "pipeline_"):
        steps = [*model.steps[:-1], *model.steps[-1][1].pipeline_.steps]
        return make_pipeline(*(step for _, step in steps))
    return getattr(model, "pipeline_", model)


def _learner(model: BaseEstimator) -> BaseEstimator:
    """The model itself, or the last step of a pipeline."""
    return _learner(model.steps[-1][1]) if isinstance(model, SklearnPipeline) else model


def _tree(model: BaseEstimator, depth: int = 0) -> Tree:
    """A model, or a part of one, as a tree."""
    _check_depth(depth)
    name = type(model).__name__
    if isinstance(model, NeighborClassifier) or OWN.get(name) == type(model).__module__:
        return _with_output(model._tree(), model)
    is_sklearns = type(model).__module__.startswith("sklearn.")
    if type(model) is not Pipeline and not (is_sklearns and name in _STORABLE):
        if hasattr(model, "fit"):
            check_is_fitted(model)
        raise TypeError(
            f"cannot save a {name}: model files support nearlabel's estimators and graphs, and "
            f"scikit-learn's {', '.join(_STORABLE)} (joblib or skops can save other classes)"
        )

    def part_tree(part: BaseEstimator | str | None) -> Tree | str | None:
        return part if _is_word(part) else _tree(part, depth + 1)

    if name == "Pipeline":
        return {"class": name, "steps": [[step, part_tree(part)] for step, part in model.steps]}
    if name == "FeatureUnion":
        tree = feature_union_tree(model, part_tree)
    elif name == "ColumnTransformer":
        check_is_fitted(model)
        tree = column_transformer_tree(model, part_tree)
    else:
        if name != "HashingVectorizer":  # learns nothing; before scikit-learn 1.8 never fitted
            check_is_fitted(model)
        tree = transformer_tree(model)
    return _with_output(tree, model)


def _with_output(tree: Tree, model: BaseEstimator) -> Tree:
    """The tree with the setting of `set_output`, which has no public name."""
    output = getattr(model, "_sklearn_output_config", {}).get("transform")
    return tree if output is None else {**tree, "output": output}


def _check_loads(tree: Tree) -> None:
    """Rebuild transformers once, so that nothing is saved that cannot be loaded."""
    if tree["class"] in OWN:
        return
    if tree["class"] == "Pipeline":
        for part in (part for _, part in tree["steps"] if not _is_word(part)):
            _check_loads(part)
        return
    try:
        _model(tree, FORMAT)
    except (*NONSENSE, RecursionError) as error:
        reason = f"it could not be loaded again ({_reason(error)})"
        raise ValueError(f"cannot save a {tree['class']}: {reason}") from error


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _model(tree: Tree, version: int, depth: int = 0) -> BaseEstimator:
    """The model, or the part of one, of a tree."""
    _check_depth(depth)
    name = tree["class"]
    if name in OWN:
        own = getattr(import_module(OWN[name]), name)
        return _with_output_of(tree, own._from_tree(tree, version))

    def transformer(part: Tree) -> BaseEstimator:
        model = _model(part, version, depth + 1)
        if not hasattr(model, "transform"):
            raise ValueError(f"expected a transformer; got a {type(model).__name__}")
        return model

    if name == "Pipeline":
        *first, (last, part) = check_steps(tree["steps"], (None, "passthrough"))
        steps = [(step, part if _is_word(part) else transformer(part)) for step, part in first]
        if not _is_word(part):
            part = _model(part, version, depth + 1)
            if not hasattr(part, "predict") and not hasattr(part, "transform"):
                raise ValueError(f"expected an estimator; got a {type(part).__name__}")
        _check_widths([*steps, (last, part)])
        return Pipeline([*steps, (last, part)])
    tree = checked_tree(tree)
    if name in KINDS:
        model = transformer_from(tree)
    elif name == "ColumnTransformer":
        model = column_transformer_from(tree, transformer)
    elif name == "FeatureUnion":
        model = feature_union_from(tree, transformer)
    else:
        raise FileError(f"contains a {name!r}, which this version of nearlabel does not support")
    return _with_output_of(tree, model)


def _check_widths(steps: Sequence[tuple[str, Any]]) -> None:
    """Each step of a pipeline takes as many features as the one before returns, if both say."""
    width = None
    for name, part in steps:
        if _is_word(part):
            continue
        taken = getattr(part, "n_features_in_", None)
        if None not in (width, taken) and width != taken:
            raise ValueError(f"step {name!r} takes {taken} features, but is given {width}")
        try:
            width = len(getattr(part, "vocabulary_", None) or part.get_feature_names_out())
        except (AttributeError, TypeError, ValueError):  # an estimator, or no names are known
            width = None


def _with_output_of(tree: Tree, model: BaseEstimator) -> BaseEstimator:
    """A transformer with the setting of `set_output` restored."""
    if "output" in tree and hasattr(model, "set_output"):
        output = check_choice(tree["output"], "output", ("default", "pandas", "polars"))
        model.set_output(transform=output)
    return model


def _is_word(part: object) -> bool:
    """Whether a step is "passthrough" or the like."""
    return part is None or isinstance(part, str)


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"model files support pipelines nested at most {_DEEPEST} levels deep")
