"""Changes to the items of a model file: what add, forget, relabel and verify share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from nearlabel.cli.model_columns import transformers
from nearlabel.cli.model_items import as_pipeline, label_name, naming_order, set_jobs
from nearlabel.cli.options import Json, Switch, Whole
from nearlabel.cli.options.errors import naming
from nearlabel.cli.output import counted, file_size, printable, say, say_folded, say_json, steps

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.collection.store_checks import CollectionCheck
    from nearlabel.common.arrays import Array, Csr, Tree
    from nearlabel.methods.fitted_model import History
    from nearlabel.methods.verification import Verification

# What a method learns in fit and keeps when items are forgotten.
_STAYS = {"LAMLkNN": "the centers", "PositivekNN": "the rate and the cut"}


@dataclass(frozen=True)
class OpenModel:
    """A model file that is open for changes.

    Attributes
    ----------
    path : str
    pipeline : Pipeline
        The model is its last step.
    n_labels : int
        Labels that there were at the beginning.
    n_jobs : int or None
        Threads that the model asks for by itself.
    history : History
        Changes that were made before.
    """

    path: str
    pipeline: BaseEstimator
    n_labels: int
    n_jobs: int | None
    history: History

    @property
    def model(self) -> BaseEstimator:
        """The last step of the pipeline."""
        return self.pipeline[-1]

    @property
    def has_numbers(self) -> bool:
        """Whether the ids of the items are numbers, not names."""
        return bool(self.model.ids_.dtype.kind == "i")

    def ids(self, names: Sequence[str], hint: str = "") -> Array:
        """Ids of the type that the model has; `hint` ends the error if they must be numbers."""
        import numpy as np

        from nearlabel.common.messages import shown

        if not self.has_numbers:
            return np.array(names, dtype=np.str_)
        odd = next((name for name in names if not re.fullmatch("-?[0-9]{1,18}", name)), None)
        if odd is not None:
            what = f"the items of {self.path} have numbers as ids; got {shown(odd)}"
            raise ValueError(f"{what}{hint}")
        return np.array([int(name) for name in names], dtype=np.int64)

    def known_ids(
        self,
        names: Sequence[str],
        source: str | None = None,
        *,
        ignore_missing: bool = False,
        advice: str = "",
    ) -> Array:
        """Ids of items that the model has; errors name the file that they are from.

        Unknown ids are an error, unless missing ones are to be ignored.
        """
        import numpy as np

        from nearlabel.common.messages import some

        ids = self.ids(names, f" in {source}" if source else "")
        is_known = np.isin(ids, self.model.ids_)
        if not ignore_missing and not is_known.all():
            where = f"{source}: " if source else ""
            missing = some(ids[~is_known].tolist())
            raise ValueError(f"{where}{self.path} has no item {missing}{advice}")
        return ids[is_known]

    def labels(self, Y: Csr, names: Sequence[str] | None) -> Tree:
        """Labels as `partial_fit` and `relabel` of the model take them.

        If the labels of the model have no names, the columns of Y are named by numbers.
        """
        import numpy as np
        from scipy import sparse

        from nearlabel.common.messages import shown

        q = self.n_labels
        if not Y.shape[1]:  # no item has a label
            return {"y": sparse.csr_array((Y.shape[0], q), dtype=np.int8)}
        if names is None or self.model.label_names_ is not None:
            return {"y": Y, "label_names": names}
        if isinstance(self.model.classes_, np.ndarray):  # of one column, by whatever name
            return {"y": Y}
        at = [int(name) if re.fullmatch("[0-9]{1,9}", name) else -1 for name in names]
        new = sorted(column for column in at if column >= q)
        for name, column in zip(names, at, strict=True):
            if column < 0 or (column >= q and new != [*range(q, q + len(new))]):
                raise ValueError(
                    f"the labels of {self.path} have no names: numbers from 0 to {q - 1} expected, "
                    f"or {q} for a new label; got {shown(name)}"
                )
        entries = Y.tocoo()
        columns = np.array(at, dtype=np.int64)[entries.col]
        shape = (Y.shape[0], q + len(new))
        return {"y": sparse.csr_array((entries.data, (entries.row, columns)), shape=shape)}


@Parameter(name="*")
@dataclass(frozen=True)
class Changing:
    """How the changes of a model file are stored.

    Parameters
    ----------
    compact
        Rewrite the model file with all changes and without forgotten items. By default, changes
        are written to a journal next to it, MODEL.journal.
    refresh
        Learn everything again, including centers, rates and thresholds, which changes otherwise
        keep, and rewrite the model file.
    verify
        Recompute everything from the items, and compare.
    jobs
        Number of threads; by default that of fit; -1 for all cores.
    """

    compact: Switch = False
    refresh: Switch = False
    verify: Switch = False
    jobs: Whole | None = None
    json: Json = False

    def __post_init__(self) -> None:
        check_jobs(self.jobs)

    @contextmanager
    def opened(self, path: str, ids: str = "ID") -> Iterator[OpenModel]:
        """Open a model file for changes; errors about `ids` name the source of these."""
        from nearlabel.persistence.models import load

        with ExitStack() as stack:
            try:
                with naming_order(path):
                    loaded = stack.enter_context(load(path, journal=True))
            except BlockingIOError:
                raise ValueError(
                    f"{path} is being changed by another process; try again when it has finished"
                ) from None
            except TypeError as error:  # what it holds does not change
                raise ValueError(f"{path}: {str(error).removeprefix('journal=True: ')}") from None
            pipeline = as_pipeline(loaded, path)
            model = pipeline[-1]
            if model.ids_ is None:
                raise ValueError(
                    f"{path} was fitted to a graph, without items, and cannot be changed"
                )
            opened = OpenModel(path, pipeline, _n_labels(model), model.n_jobs, model.history_)
            self._use_jobs(opened)
            with naming(ids=ids):
                yield opened

    @property
    def writes_anew(self) -> bool:
        """Whether the whole model file is rewritten."""
        return self.compact or self.refresh

    def _use_jobs(self, opened: OpenModel) -> None:
        if self.jobs is not None:
            set_jobs(opened.model, self.jobs)

    def finish(self, opened: OpenModel, done: str, **what: object) -> int | None:
        """Rewrite and verify the file if asked for; report what was `done`; the exit code."""
        model, path = opened.model, opened.path
        is_changed = model.history_ != opened.history
        if self.writes_anew:
            set_jobs(model, opened.n_jobs)  # as the file keeps them
            self._write(opened, is_changed)
            self._use_jobs(opened)
        verified = None
        if self.verify:
            with steps("verifying") as progress:
                verified = model.verify(progress=progress)
        written = path if self.writes_anew else _journal(path) if is_changed else None
        n_labels = _n_labels(model)
        record: Tree = {
            "model": path,
            **what,
            "items": len(model.ids_),
            "labels": n_labels,
            "new_labels": [label_name(model, label) for label in range(opened.n_labels, n_labels)],
            "written": written,
            "bytes": None if written is None else Path(written).stat().st_size,
            "compacted": self.compact,
            "refreshed": self.refresh,
            "verified": None if verified is None else verification_record(verified),
        }
        if self.json:
            say_json(record)
        else:
            say(
                f"{done}: {path} has {counted(record['items'], 'item')} and "
                f"{counted(n_labels, 'label')} now"
            )
            _say_rest(record, opened)
            if verified is not None:
                say_verification(verified)
        return None if verified is None else verification_code(verified)

    def _write(self, opened: OpenModel, is_changed: bool) -> None:
        """Rewrite the model file; if that fails, the changes are already in the journal."""
        try:
            if self.refresh:
                with steps("learning") as progress:
                    opened.model.refresh(progress=progress)
            if self.compact:
                opened.model.compact()
        except OSError as error:
            path, how = opened.path, "--refresh" if self.refresh else "--compact"
            safe = f"the change is kept in {_journal(path)}, but " if is_changed else ""
            raise ValueError(
                f"{safe}{path} could not be written ({error.strerror or error}); run 'nearlabel "
                f"forget {path} {how}' to try again"
            ) from error


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of threads that is none."""
    if jobs == 0:
        raise ValueError("--jobs must be at least 1, or -1 for all cores; got 0")


def verification_record(verified: Verification | CollectionCheck) -> Tree:
    """What was compared and what differs, for JSON."""
    return {"agrees": bool(verified), **asdict(verified)}


def say_verification(verified: Verification | CollectionCheck) -> None:
    """Print what was compared and what differs."""
    say_folded(f"{'verified' if verified else 'not verified'}: {verified}")


def verification_code(verified: Verification | CollectionCheck) -> int | None:
    """The exit code of a command that has verified a model."""
    return None if verified else 1


def _say_rest(record: Tree, opened: OpenModel) -> None:
    """Print which labels are new, where the changes are, and what --compact would do."""
    path, written, new = record["model"], record["written"], record["new_labels"]
    if new:
        shown = [printable(name) for name in new[:20]]
        shown += [f"…and {len(new) - len(shown):,} more"] if len(new) > len(shown) else []
        say_folded(f"{'new label' if len(new) == 1 else 'new labels'}: {', '.join(shown)}")
    if written is None:
        return
    size = f"wrote {written} ({file_size(written)})"
    if written == path:
        rest = _without_forgotten(opened, record["refreshed"])
        say_folded(f"{size}, with all changes{rest}")
    elif "forgotten" in record:
        say_folded(f"{size}; until --compact, {path} still holds what was forgotten")
    else:
        say_folded(f"{size}; --compact folds it into {path}")


def _without_forgotten(opened: OpenModel, refreshed: bool) -> str:
    """What a rewritten file still contains of forgotten items, if there are any."""
    if not opened.model.history_.forgotten:
        return ""
    learned = ["the preprocessing"] if transformers(opened.pipeline) else []
    if not refreshed:
        learned += [part for name, part in _STAYS.items() if type(opened.model).__name__ == name]
    if not learned:
        return " and without a trace of forgotten items"
    return f" and without forgotten items, except for their part in {' and '.join(learned)}"


def _n_labels(model: BaseEstimator) -> int:
    """The number of labels of a model; one if it was fitted to two classes."""
    import numpy as np

    return 1 if isinstance(model.classes_, np.ndarray) else len(model.classes_)


def source_name(data: str) -> str:
    """A file as messages name it."""
    return "standard input" if data == "-" else data


def _journal(path: str) -> str:
    """The path of the journal, for people: next to the file itself if the path is a link."""
    from nearlabel.common.journal import journal_path

    return str(journal_path(path)) if Path(path).is_symlink() else f"{path}.journal"
