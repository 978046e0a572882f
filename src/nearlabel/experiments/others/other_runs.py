"""Runs of other learners: tuned on training rows, in a separate process, and kept."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from nearlabel.common.arrays import Csr
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_real
from nearlabel.experiments.others.kept_runs import KeptRuns, OtherRun, run_key
from nearlabel.experiments.others.other_methods import OTHERS, Candidate
from nearlabel.labels.scores import DenseScores
from nearlabel.metrics import METRICS, Scorer
from nearlabel.metrics.scorers import estimator_scores, measure

CORE_HOUR = 3600.0
_FOLDS, _ROWS_OF_FOLDS = 3, 2_500  # up to this many rows, each is held out once; else a third is
_MOST_ROWS = 6_000  # used to choose parameters
_HOPELESS = 2.0  # times the limit, extrapolated from the first fit: then the run is given up
OVER = 87  # exit status of a process that took too long


def run_other(
    name: str,
    X: Any,
    Y: Csr,
    queries: Any,
    scorer: Scorer,
    *,
    seed: int = 0,
    limit: float = CORE_HOUR,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> OtherRun:
    """Predictions of one of `OTHERS`, with parameters chosen on the training rows only.

    The learner runs in a separate process, which ends after `limit` core-seconds. Runs are kept in
    `folder`, by default in the user's cache, and used again for the same learner and data. With
    `again` they are repeated. So are runs of a different version of the learner's package, unless
    the package is not installed: then the kept run is returned.
    """
    limit = check_real(limit, "limit", low=0)
    candidates = OTHERS[name].candidates(X, Y, seed)
    models = [repr(one.estimator.get_params()) for one in candidates]
    settings = [name, models, asdict(scorer), seed, _FOLDS, _MOST_ROWS]
    store = KeptRuns(folder)
    key, version = run_key(settings, (X, Y, queries)), OTHERS[name].version
    kept = None if again else store.get(key, (queries.shape[0], Y.shape[1]))
    if kept is not None and version in (None, kept.version):  # noqa: SIM102
        if kept.refusal is None or kept.seconds >= limit:
            return kept
    if version is None:
        why = f"{OTHERS[name].package} is not installed"
        return OtherRun.refused(0.0, why)
    run = _in_process(name, (X, Y, queries, scorer, seed, limit), progress)
    run = replace(run, version=version)
    if run.refusal is None or run.seconds >= limit:  # else another attempt may succeed
        store.add(key, run)
    return run


def _in_process(name: str, work: tuple[Any, ...], progress: Progress | None) -> OtherRun:
    """Run a learner in a new process, and report its progress."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, name, work), daemon=True)
    start, limit = time.monotonic(), work[-1]
    process.start()
    there.close()
    try:
        while True:
            what, value = here.recv()
            if what == "run":
                run: OtherRun = value
                return run
            if progress is not None:
                progress(*value)
    except EOFError:  # it ended without a result
        process.join()
        if process.exitcode == OVER:
            why = f"it takes over {_time(limit)} of a core"
            return OtherRun.refused(limit, why)
        passed, status = time.monotonic() - start, process.exitcode
        why = f"its process ended with status {status}"
        if status is not None and status < 0:
            why = f"its process was stopped by signal {-status}: there may be too little memory"
        return OtherRun.refused(min(passed, 0.99 * limit), why)
    finally:
        process.kill()
        process.join()
        here.close()


def _work(pipe: Any, name: str, work: tuple[Any, ...]) -> None:
    """The work of the new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    X, Y, queries, scorer, seed, limit = work
    warnings.simplefilter("ignore")  # about regressions that have not converged
    try:
        candidates = OTHERS[name].candidates(X, Y, seed)  # imports the package: not timed
        threading.Thread(target=stop_after, args=(limit,), daemon=True).start()
        run = _chosen_run(candidates, X, Y, queries, scorer, seed, limit, pipe)
    except Exception as error:
        why = one_line(str(error) or type(error).__name__)
        run = OtherRun.refused(time.process_time(), why)
    pipe.send(("run", run))
    pipe.close()


def stop_after(limit: float) -> None:
    """End the process after `limit` core-seconds; runs in its own thread."""
    end = time.process_time() + limit
    while (rest := end - time.process_time()) > 0:
        time.sleep(min(max(rest / 16, 0.05), 5))
    os._exit(OVER)


def _chosen_run(
    candidates: list[Candidate],
    X: Any,
    Y: Csr,
    queries: Any,
    scorer: Scorer,
    seed: int,
    limit: float,
    pipe: Any,
) -> OtherRun:
    dense = Y.toarray().astype(np.int64)  # the type of labels in scikit-learn
    parts = _inner_parts(len(dense), seed)
    steps = len(candidates) * len(parts) + 1
    found = np.zeros((len(candidates), len(parts)))
    begin = time.process_time()
    for step in range(steps - 1):
        place, part = step // len(parts), step % len(parts)
        train, test = parts[part]
        model = clone(candidates[place].estimator).fit(X[train], dense[train])
        found[place, part] = _value(model, X[test], Y[test], scorer)
        pipe.send(("progress", (step + 1, steps)))
        whole = (time.process_time() - begin) / (step + 1) * steps
        if step == 0 and whole > _HOPELESS * limit:
            why = f"it would take about {_time(whole)} of a core, more than {_time(limit)}"
            return OtherRun.refused(limit, why)
    values = np.nan_to_num(found, nan=-np.inf).mean(axis=1)
    best = int(np.argmax(values))
    model = clone(candidates[best].estimator).fit(X, dense)
    scores = np.asarray(estimator_scores(model, queries), np.float32)
    decided = np.asarray(model.predict(queries)).reshape(scores.shape) > 0
    chosen, seconds = candidates[best].parameters, time.process_time() - begin
    return OtherRun(scores, decided, seconds, chosen, float(values[best]))


def _value(model: Any, X: Any, Y: Csr, scorer: Scorer) -> float:
    """The score of a fitted model; greater is better."""
    if METRICS[scorer.metric].reads == "sets":
        decided = np.asarray(model.predict(X)).reshape(Y.shape)
        said = Said(DenseScores(decided.astype(np.float64)), sparse.csr_array(decided))
    else:
        said = Said(DenseScores(np.asarray(estimator_scores(model, X), np.float64)), None)
    return measure(Y, said, {"score": scorer})["score"]


@dataclass(frozen=True)
class Said:
    """The predictions of a learner: label scores, and label sets if they are needed."""

    scores: Any
    decided: Any


def _inner_parts(n: int, seed: int) -> list[tuple[Any, Any]]:
    """Training and validation rows for the choice among candidates."""
    order = np.random.default_rng(seed).permutation(n)[:_MOST_ROWS]
    folds = [np.sort(fold) for fold in np.array_split(order, _FOLDS)]
    held_out = folds if n <= _ROWS_OF_FOLDS else folds[:1]
    return [(np.setdiff1d(order, fold), fold) for fold in held_out]


def _time(seconds: float) -> str:
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.95 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
