"""Runs of other learners: tuned on training rows, in a separate process, and kept."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from multiprocessing.connection import Connection

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Array, Csr, Matrix
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_real
from nearlabel.experiments.others.other_methods import LearnerCandidate, OtherMethod
from nearlabel.experiments.result_store import ResultStore
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics import Scorer
from nearlabel.metrics.scorers import estimator_scores

CORE_HOUR = 3600.0
OVER = 87  # exit status of a process that took too long
_FOLDS, _MOST_ROWS = 3, 6_000  # by which parameters are chosen


@dataclass(frozen=True)
class LearnerTask:
    """What another learner has to do within a limit of core-seconds.

    It learns from X and Y, and predicts `queries`; the scorer chooses among its candidates.
    """

    name: str
    method: OtherMethod
    X: Matrix
    Y: Csr
    queries: Matrix
    scorer: Scorer
    seed: int = 0
    limit: float = CORE_HOUR

    def candidates(self) -> list[LearnerCandidate]:
        """The candidates to choose from."""
        return self.method.candidates(self.X, self.Y, self.seed)


@dataclass(frozen=True)
class OtherRun:
    """The predictions of another learner for test rows.

    `scores` rank the labels, shape (m, q), and `decided` are those that it predicts; both are None
    if there are no predictions, for which `refusal` is the reason. `seconds` of a processor include
    the choice of the parameters `chosen`, by the score `held_out` on held-out training rows, where
    greater is better. `version` is that of the learner's package.
    """

    scores: Array | LabelScores | None
    decided: Matrix | None
    seconds: float
    chosen: Mapping[str, object]
    held_out: float | None = None
    refusal: str | None = None
    version: str = ""

    @classmethod
    def refused(cls, seconds: float, why: str) -> OtherRun:
        """A run without predictions."""
        return cls(None, None, seconds, {}, refusal=why)


def run_other(
    task: LearnerTask,
    *,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> OtherRun:
    """Predictions of another learner, with parameters chosen on the training rows only.

    The learner runs in a separate process, which ends after the limit of core-seconds. Runs are
    kept in `folder`, by default in the user's cache, and used again for the same learner, version
    of its package and data, unless `again`.
    """
    check_real(task.limit, "limit", low=0)
    models = [repr(candidate.estimator.get_params()) for candidate in task.candidates()]
    settings = [task.name, models, asdict(task.scorer), task.seed, _FOLDS, _MOST_ROWS]
    # With other fields of `OtherRun`, the folder needs another name.
    store, installed = ResultStore("others", folder), version(task.method.package)
    key = run_key(settings, (task.X, task.Y, task.queries))

    def is_final(run: OtherRun) -> bool:  # else another attempt may succeed
        return run.refusal is None or run.seconds >= task.limit

    stored = None if again else store.get(key)
    run = None if stored is None else OtherRun(**stored)
    if run is not None and run.version == installed and is_final(run):
        return run
    run = replace(_in_process(task, progress), version=installed)
    if is_final(run):
        store.add(key, vars(run))
    return run


def run_key(settings: Sequence[object], matrices: Sequence[Matrix]) -> str:
    """A digest of the data and of the settings of a learner."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for matrix in matrices:
        parts: tuple[Array, ...] = (matrix,)
        if not isinstance(matrix, np.ndarray):
            parts = matrix.data, matrix.indices, matrix.indptr
        digest.update(f"{matrix.shape}{len(parts) > 1}".encode())
        for part in parts:
            digest.update(f"{part.dtype}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:40]


def _in_process(task: LearnerTask, progress: Progress | None) -> OtherRun:
    """Run a learner in a new process, and report its progress."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run_in_process, args=(there, task), daemon=True)
    start = time.monotonic()
    process.start()
    there.close()
    try:
        while True:
            message = here.recv()
            if isinstance(message, OtherRun):
                return message
            if progress is not None:
                progress(*message)
    except EOFError:  # it ended without a result
        process.join()
        if process.exitcode == OVER:
            return OtherRun.refused(task.limit, f"it takes over {_time(task.limit)} of a core")
        passed, status = time.monotonic() - start, process.exitcode
        why = f"its process ended with status {status}"
        if status is not None and status < 0:
            why = f"its process was stopped by signal {-status}: there may be too little memory"
        return OtherRun.refused(min(passed, 0.99 * task.limit), why)
    finally:
        process.kill()
        process.join()
        here.close()


def _run_in_process(pipe: Connection, task: LearnerTask) -> None:
    """The work of the new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    warnings.simplefilter("ignore")  # about regressions that have not converged
    try:
        candidates = task.candidates()  # imports the package: not timed
        threading.Thread(target=stop_after, args=(task.limit,), daemon=True).start()
        run = tuned_run(task, candidates, lambda done, total: pipe.send((done, total)))
    except Exception as error:
        why = one_line(str(error) or type(error).__name__)
        run = OtherRun.refused(time.process_time(), why)
    pipe.send(run)
    pipe.close()


def stop_after(limit: float) -> None:
    """End the process after `limit` core-seconds; runs in its own thread."""
    end = time.process_time() + limit
    while (rest := end - time.process_time()) > 0:
        time.sleep(min(max(rest / 16, 0.05), 5))
    os._exit(OVER)


def tuned_run(
    task: LearnerTask, candidates: Sequence[LearnerCandidate], progress: Progress
) -> OtherRun:
    """The predictions of the candidate that is best on held-out training rows.

    Up to 2,500 rows, each is held out once; else a third of them.
    """
    X, Y, dense = task.X, task.Y, task.Y.toarray().astype(np.int64)  # scikit-learn's type of labels
    order = np.random.default_rng(task.seed).permutation(len(dense))[:_MOST_ROWS]
    folds = [np.sort(fold) for fold in np.array_split(order, _FOLDS)]
    parts = [(np.setdiff1d(order, fold), fold) for fold in folds[: 1 if len(dense) > 2_500 else 3]]
    steps = len(candidates) * len(parts) + 1
    values = np.zeros((len(candidates), len(parts)))
    begin = time.process_time()
    for step in range(steps - 1):
        place, (train, test) = step // len(parts), parts[step % len(parts)]
        model = clone(candidates[place].estimator).fit(X[train], dense[train])
        values[place, step % len(parts)] = task.scorer(model, X[test], Y[test])
        progress(step + 1, steps)
        whole = (time.process_time() - begin) / (step + 1) * steps
        if step == 0 and whole > 2 * task.limit:  # it is given up
            why = f"it would take about {_time(whole)} of a core, more than {_time(task.limit)}"
            return OtherRun.refused(task.limit, why)
    means = np.nan_to_num(values, nan=-np.inf).mean(axis=1)
    best = int(np.argmax(means))
    model = clone(candidates[best].estimator).fit(X, dense)
    scores = np.asarray(estimator_scores(model, task.queries), np.float32)
    decided = np.asarray(model.predict(task.queries)).reshape(scores.shape) > 0
    chosen, seconds = candidates[best].parameters, time.process_time() - begin
    return OtherRun(scores, decided, seconds, chosen, float(means[best]))


def _time(seconds: float) -> str:
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.95 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
