"""fit, predict and rank."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.method_options import TITLES, Learning
from nearlabel.cli.options import (
    Data,
    Json,
    LabeledReading,
    Output,
    Part,
    Reading,
    Scale,
    Switch,
    Whole,
    part_of,
)
from nearlabel.cli.output import (
    WIDTH,
    Steps,
    check_results,
    check_target,
    is_table,
    say,
    say_json,
    say_table,
    write_results,
)
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn
from nearlabel.cli.search_options import Searching, measured_recall
from nearlabel.common.progress import Stages

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

# Rows of which answers are told before the next are searched: many, since a search by lists is far
# faster for many queries than for each alone.
_ROWS_AT_ONCE = 2**15
_READING, _LABELED = Reading(), LabeledReading()
_LEARNING, _SEARCHING = Learning(), Searching()


def fit(
    data: Data,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    k: Whole = 10,
    scale: Scale = "none",
    part: Part = "all",
    seed: Whole = 0,
    json: Json = False,
    learning: Learning = _LEARNING,
    searching: Searching = _SEARCHING,
    reading: LabeledReading = _LABELED,
) -> None:
    """Learn from labelled items and write a model file.

    Parameters
    ----------
    data
        Name of a data set, a file, or - for standard input.
    output
        The model file; it is complete or not there.
    k
        Neighbors that vote.
    scale
        Scaling of the features, kept in the model.
    part
        Rows to learn from, where the data set has a split.
    seed
        Of algorithms that draw at random.
    json
        Print JSON.

    Examples
    --------
    nearlabel fit songs.csv -o songs.model
    nearlabel fit songs.csv -o songs.model --tags moods --id title --scale minmax
    nearlabel fit emotions.arff -o emotions.model --k 8
    nearlabel fit songs.csv -o songs.model --algorithm LAMLkNN --set n_clusters=10
    nearlabel fit yeast -o yeast.model --part train
    nearlabel fit many.npz -o many.model --search approximate --jobs -1
    """
    check_target("--output", output, data)
    searching.check()
    items = part_of(reading.load(data), part)
    if not items.Y.shape[1]:
        raise ValueError(f"{data} has no labels to learn from")

    import_scikit_learn(*SCALING if scale != "none" else ())
    import nearlabel as nl
    from nearlabel.experiments import scaler

    model = learning.model(k, seed, searching)
    X, transformer = items.X, scaler(scale, items.X)
    if transformer is not None:
        X = transformer.fit_transform(X)
    ids: Any = range(1, len(items) + 1)  # as items without names are counted
    if items.row_names is not None and len(set(items.row_names.tolist())) == len(items):
        ids = items.row_names
    elif items.row_names is not None:
        warnings.warn("some rows have the same id: rows are known by their numbers", stacklevel=2)
    with Steps("learning") as progress:
        model.fit(X, items.Y, label_names=items.label_names, ids=ids, progress=progress)
    first: Any = model if transformer is None else transformer
    if items.feature_names is not None:  # by these a later file's columns are found
        first.feature_names_in_ = items.feature_names.astype(object)
    if transformer is None:
        model.save(output)
    else:
        from sklearn.pipeline import make_pipeline

        nl.save(make_pipeline(transformer, model), output)
    told: dict[str, Any] = {
        "model": output,
        **learning.told(model),
        "k": model.n_neighbors_,
        "items": len(items),
        "features": int(items.X.shape[1]),
        "labels": int(items.Y.shape[1]),
        "scale": scale,
        **searching.told(),
        "recall": measured_recall(model),
        "bytes": Path(output).stat().st_size,
    }
    if json:
        say_json(told)
        return
    title = TITLES[learning.algorithm] + (", a cut a label" if learning.thresholds else "")
    say(f"{title}, {told['k']} neighbors, scale {scale}, learned from {data}:")
    say(f"{told['items']} items, {told['features']} features, {told['labels']} labels")
    if model.search_recall_ is not None:
        say(f"approximate search, measured recall {model.search_recall_}")
    say(f"wrote {output} ({told['bytes'] / 1e6:.1f} MB)")


def predict(
    model: str,
    data: Data,
    *,
    part: Part = "all",
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    reading: Reading = _READING,
) -> None:
    """Decide the labels of items.

    Parameters
    ----------
    model
        File that fit wrote.
    data
        Name of a data set, a file, or - for standard input. Columns are found by name; those that
        the model does not know are passed over.
    part
        Rows to be labelled, where the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table.
    json
        Print JSON.

    Examples
    --------
    nearlabel predict songs.model new.csv
    nearlabel predict songs.model new.csv -o tagged.csv
    cat new.jsonl | nearlabel predict songs.model - --json
    """
    answers = _Answers(model, data, part, reading, searching, output)

    def records() -> Iterator[dict[str, Any]]:
        for name, labels in answers.decided():
            yield {"id": name, "labels": labels}

    if output is not None:
        told = records()
        if is_table(output):
            mark = answers.separator()
            told = ({**one, "labels": mark.join(one["labels"])} for one in records())
        say_written(write_results(output, told), output, json)
    elif json:
        say_json(list(records()))
    else:
        rows = [(record["id"], ", ".join(record["labels"]) or "-") for record in records()]
        say_table(("item", "labels"), rows, numbers=False)


def rank(
    model: str,
    data: Data,
    *,
    top: Whole = 5,
    why: Switch = False,
    part: Part = "all",
    output: Output = None,
    json: Json = False,
    searching: Searching = _SEARCHING,
    reading: Reading = _READING,
) -> None:
    """Rank the labels of items, best first.

    Parameters
    ----------
    model
        File that fit wrote.
    data
        Name of a data set, a file, or - for standard input.
    top
        Labels an item.
    why
        Tell the neighbors that voted, nearest first.
    part
        Rows to be ranked, where the data set has a split.
    output
        Write a .csv, .tsv or .jsonl file instead of a table.
    json
        Print JSON.

    Examples
    --------
    nearlabel rank songs.model new.csv --top 3
    nearlabel rank songs.model new.csv --id title --why
    nearlabel rank yeast.model yeast --part test -o ranked.csv
    """
    answers = _Answers(model, data, part, reading, searching, output)

    def records() -> Iterator[dict[str, Any]]:
        for name, labels in answers.explained(top) if why else answers.ranked(top):
            yield {"id": name, "labels": labels}

    if why and output is not None and is_table(output):
        raise ValueError("--why has no place in a table: write a .jsonl file")
    if output is not None and is_table(output):
        rows = (
            {"id": record["id"], "rank": place, **scored}
            for record in records()
            for place, scored in enumerate(record["labels"], 1)
        )
        say_written(write_results(output, rows), output, json)
    elif output is not None:
        say_written(write_results(output, records()), output, json)
    elif json:
        say_json(list(records()))
    elif why:
        for record in records():
            say(str(record["id"]))
            _say_votes(record["labels"], answers.neighbors)
    else:
        lines = [
            (
                record["id"],
                ", ".join(f"{one['label']} {_score(one)}" for one in record["labels"]),
            )
            for record in records()
        ]
        say_table(("item", "labels with their scores"), lines, numbers=False)


def _say_votes(labels: list[dict[str, Any]], k: int) -> None:
    """A line a label: its score, how many neighbors carry it, and the nearest of these."""
    width = max(len(one["label"]) for one in labels)
    for one in labels:
        voters = [f"{voter['id']} at {voter['distance']:.3g}" for voter in one["neighbors"]]
        shown = ", ".join(voters[:2]) + (", …" if len(voters) > 2 else "")
        mark = "+" if one["predicted"] else " "
        votes = f"{len(voters)} of {k} neighbors" + (f": {shown}" if voters else "")
        line = f"  {mark} {one['label']:<{width}}  {_score(one)}  {votes}"
        say(textwrap.fill(line, WIDTH, subsequent_indent=" " * 6))


def _score(label: dict[str, Any]) -> str:
    return f"{round(label['score'], 3) + 0.0:.3f}"  # no minus before zero


def say_written(count: int, output: str, json: bool) -> None:
    """Tell what was written to a file."""
    if json:
        say_json({"output": output, "rows": count})
    else:
        say(f"wrote {output} ({count} rows)")


class _Answers:
    """What a model says of items, by names, a run of rows at a time."""

    def __init__(
        self,
        path: str,
        data: str,
        part: Part,
        reading: Reading,
        searching: Searching,
        output: str | None,
    ) -> None:
        check_results(output, path, data)
        searching.check()
        import_scikit_learn(*SCALING)
        import nearlabel as nl
        from nearlabel.methods.base import NeighborClassifier

        self._loaded = nl.load(path)
        last = self._loaded.steps[-1][1] if hasattr(self._loaded, "steps") else self._loaded
        if not isinstance(last, NeighborClassifier):
            raise ValueError(f"{path} holds a {type(last).__name__} and no model")
        self._model = last
        searching.apply(last)
        names = getattr(self._loaded, "feature_names_in_", None)
        features = None if names is None else [str(name) for name in names.tolist()]
        self._items = part_of(reading.load(data, features=features, labels=()), part)

    def _blocks(self, what: str) -> Iterator[tuple[Any, Any, Any]]:
        """Names and vectors of runs of rows, and progress of answering for them."""
        from scipy import sparse
        from sklearn.utils import get_tags

        items: Dataset = self._items
        names = range(1, len(items) + 1) if items.row_names is None else items.row_names.tolist()
        with Steps(what) as progress:
            stages = Stages(progress, len(items))
            for start in range(0, len(items), _ROWS_AT_ONCE):
                rows = slice(start, min(start + _ROWS_AT_ONCE, len(items)))
                X = items.X[rows]
                for _, step in getattr(self._loaded, "steps", [])[:-1]:
                    if sparse.issparse(X) and not get_tags(step).input_tags.sparse:
                        X = X.toarray()
                    X = step.transform(X)
                yield names[rows], X, stages.next(rows.stop - rows.start)

    def _label(self, label: int) -> str:
        names = self._model.label_names_
        return str(label) if names is None else str(names[label])

    def decided(self) -> Iterator[tuple[Any, list[str]]]:
        """The name of each item and the labels that it gets."""
        from nearlabel.common.arrays import canonical_csr, row_entries

        for names, X, progress in self._blocks("predicting"):
            decided = canonical_csr(self._model.predict(X, progress=progress))
            for place, name in enumerate(names):
                yield name, [self._label(label) for label, _ in sorted(row_entries(decided, place))]

    @property
    def neighbors(self) -> int:
        """How many neighbors vote."""
        return int(self._model.n_neighbors_)

    def explained(self, top: int) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """The name of each item and its best labels, with the neighbors that voted."""
        for names, X, progress in self._blocks("explaining"):
            for place, name in enumerate(names):
                yield (
                    name,
                    [
                        {
                            "label": str(one.name),
                            "score": one.score,
                            "predicted": one.predicted,
                            "neighbors": [
                                {"id": voter.id, "distance": voter.distance}
                                for voter in one.neighbors
                            ],
                        }
                        for one in self._model.explain(X[place : place + 1], top)
                    ],
                )
                progress(place + 1, len(names))

    def ranked(self, top: int) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """The name of each item and its best labels with their scores."""
        for names, X, progress in self._blocks("ranking"):
            best = self._model.rank(X, top, progress=progress)
            for name, labels, scores in zip(
                names, best.labels.tolist(), best.scores.tolist(), strict=True
            ):
                pairs = zip(labels, scores, strict=True)
                yield (
                    name,
                    [{"label": self._label(label), "score": score} for label, score in pairs],
                )

    def separator(self) -> str:
        """The mark between labels in one cell, by which the reader of tables divides them again."""
        names = self._model.label_names_
        if names is not None and any(";" in name for name in names.tolist()):
            raise ValueError("a label has ';' in its name: write a .jsonl file")
        return ";"
