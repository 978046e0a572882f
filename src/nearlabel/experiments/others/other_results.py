"""Results of other learners and of `AutoNeighbors` on parts of a data set."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence

from nearlabel.blend.auto_neighbors import AutoNeighbors
from nearlabel.common.arrays import Csr, Matrix
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import check_dense_size, label_matrix
from nearlabel.datasets import Dataset
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.evaluation import SplitResult
from nearlabel.experiments.folds import FoldAnswers, part_vectors
from nearlabel.experiments.others.other_methods import OTHERS, OtherMethod
from nearlabel.experiments.others.other_runs import CORE_HOUR, LearnerTask, OtherRun, run_other
from nearlabel.experiments.protocols import Part
from nearlabel.metrics import METRICS, Scorer
from nearlabel.metrics.scorers import evaluate_and_per_row, measure

BEST = "AutoNeighbors"


def evaluate_others(
    data: Dataset,
    names: Sequence[str],
    parts: Sequence[Part],
    scorer: Scorer,
    *,
    known: Mapping[str, OtherMethod] = OTHERS,
    impute: str = "none",
    convention: str = "paper",
    at: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    limit: float = CORE_HOUR,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, list[SplitResult]]:
    """Evaluate other learners, named in `known`, and "AutoNeighbors" on parts with test rows.

    Parameters and scaling of the features are chosen on the training rows of each part, those of
    other learners by the scorer, within a `limit` of core-seconds. Their runs are kept, so that an
    interrupted comparison can be continued: see `run_other`. The other arguments are those of
    `evaluate_splits`.
    """
    if any(part.left_out for part in parts):
        raise ValueError(
            "parts must have test rows, as from 'holdout' or 'cv10'; got leave-one-out"
        )
    results: dict[str, list[SplitResult]] = {name: [] for name in names}
    Y = label_matrix(data.Y, "Y")
    preparing = Preparing("none", impute, data.text)
    steps = 100  # of progress per run
    stages = Stages(progress, steps * len(parts) * len(names))
    for part in parts:
        X, queries, _ = part_vectors(part, data.X, Y, preparing)("euclidean")
        work = X, Y[part.train], queries, scorer, seed
        for name in names:
            tell = stages.next(steps)
            try:
                if name == BEST:
                    run = _best(*work, n_jobs, tell)
                else:
                    what = f"{name}, which scores every label of every row,"
                    check_dense_size(what, Y.shape, 24, BEST)  # bytes of inputs and outputs
                    task = LearnerTask(name, known[name], *work, limit)
                    run = run_other(task, again=again, folder=folder, progress=tell)
            except MemoryError as error:
                run = OtherRun.refused(0.0, str(error))
            if run.refusal is not None:
                results[name].append(SplitResult.refused(run.refusal, run.seconds))
                continue
            metrics, rows = evaluate_and_per_row(
                Y[part.test], run.scores, run.decided, convention, at=at
            )
            left_out = math.nan if run.held_out is None else run.held_out
            results[name].append(
                SplitResult(
                    metrics, run.seconds, left_out=left_out, rows=rows, parameters=run.chosen
                )
            )
            if tell is not None:
                tell(1, 1)
    return results


def _best(
    X: Matrix,
    Y: Csr,
    queries: Matrix,
    scorer: Scorer,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> OtherRun:
    """Predictions of `AutoNeighbors`, and its leave-one-out score on the training rows."""
    start = time.process_time()
    model = AutoNeighbors(random_state=seed, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few rows: nothing can be done here
        model.fit(X, Y, progress=progress)
    scores, decided = model.label_scores(queries), model.predict(queries)
    seconds = time.process_time() - start
    space = model.blend_.label_space_
    chosen = {"scale": model.scale_} | ({} if space is None else {"ridge": space.kernel_})
    held_out = None
    if METRICS[scorer.metric].reads == "scores":
        answers = FoldAnswers(model.left_out_scores(), lambda _: None)
        held_out = measure(Y, answers, {"score": scorer})["score"]
    return OtherRun(scores, decided, seconds, chosen, held_out)
