"""Results of other learners and of `AutoNeighbors` on parts of a data set."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

from nearlabel.blend.auto_neighbors import AutoNeighbors
from nearlabel.common.arrays import Csr
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import check_dense_size, label_matrix
from nearlabel.datasets import Dataset
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.evaluation import SplitResult
from nearlabel.experiments.others.kept_runs import OtherRun
from nearlabel.experiments.others.other_runs import CORE_HOUR, Said, run_other
from nearlabel.experiments.protocols import Part
from nearlabel.metrics import METRICS, Scorer
from nearlabel.metrics.scorers import evaluate_and_per_row, measure

BEST = "AutoNeighbors"
_BYTES_A_PAIR = 24  # per row and label, in the inputs and outputs of learners
_STEPS = 100  # of progress per run


def evaluate_others(
    data: Dataset,
    names: Sequence[str],
    parts: Sequence[Part],
    scorer: Scorer,
    *,
    impute: str = "none",
    convention: str = "paper",
    at: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    limit: float = CORE_HOUR,
    again: bool = False,
    folder: Any = None,
    progress: Progress | None = None,
) -> dict[str, list[SplitResult]]:
    """Evaluate other learners, and `AutoNeighbors`, on each part.

    Parameters and scaling of the features are chosen on the training rows of each part. The runs
    of other learners are kept, so that an interrupted comparison can be continued.

    Parameters
    ----------
    data : Dataset
    names : sequence of str
        Names of `OTHERS`, or "AutoNeighbors".
    parts : sequence of Part, from `splits`
        Leave-one-out is not supported.
    scorer : Scorer
        The metric by which other learners choose their parameters.
    impute, convention, at
        As in `evaluate_splits`.
    seed, limit, again, folder
        As in `run_other`.
    progress : callable, optional
        Called with (steps done, total number of steps).

    Returns
    -------
    dict of str to list of SplitResult
    """
    if any(part.left_out for part in parts):
        raise ValueError(
            "parts must have test rows, as from 'holdout' or 'cv10'; got leave-one-out"
        )
    found: dict[str, list[SplitResult]] = {name: [] for name in names}
    Y = label_matrix(data.Y, "Y")
    stages = Stages(progress, _STEPS * len(parts) * len(names))
    for part in parts:
        truth = Y[part.test]
        X, queries = _vectors(data, part, impute)
        for name in names:
            work = X, Y[part.train], queries
            tell = stages.next(_STEPS)
            try:
                if name == BEST:
                    run = _best(*work, scorer, seed, n_jobs, tell)
                else:
                    what = f"{name}, which scores every label of every row,"
                    check_dense_size(what, Y.shape, _BYTES_A_PAIR, BEST)
                    how = {"seed": seed, "limit": limit, "again": again, "folder": folder}
                    run = run_other(name, *work, scorer, **how, progress=tell)
            except MemoryError as error:
                run = OtherRun.refused(0.0, str(error))
            if run.refusal is not None:
                found[name].append(SplitResult({}, run.seconds, run.refusal))
                continue
            metrics, rows = evaluate_and_per_row(truth, run.scores, run.decided, convention, at=at)
            value = math.nan if run.held_out is None else run.held_out
            more: dict[str, Any] = {"parameters": run.chosen, "rows": rows, "left_out": value}
            found[name].append(SplitResult(metrics, run.seconds, **more))
            if tell is not None:
                tell(1, 1)
    return found


def _vectors(data: Dataset, part: Part, impute: str) -> tuple[Any, Any]:
    """Training and test rows as unscaled vectors."""
    X, queries = data.X[part.train], data.X[part.test]
    preparing = Preparing("none", impute, data.text)
    transformer = preparing.transformer(X) if preparing.is_needed(X) else None
    if transformer is None:
        return X, queries
    return transformer.fit_transform(X), transformer.transform(queries)


def _best(
    X: Any,
    Y: Csr,
    queries: Any,
    scorer: Scorer,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> OtherRun:
    """Predictions of `AutoNeighbors`, and its leave-one-out score on the training rows."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few rows: nothing can be done here
        model = AutoNeighbors(random_state=seed, n_jobs=n_jobs).fit(X, Y, progress=progress)
    scores, decided = model.label_scores(queries), model.predict(queries)
    seconds = time.process_time() - start
    space = model.blend_.label_space_
    chosen = {"scale": model.scale_} | ({} if space is None else {"ridge": space.kernel_})
    held_out = None
    if METRICS[scorer.metric].reads == "scores":
        said = Said(model.left_out_scores(), None)
        held_out = measure(Y, said, {"score": scorer})["score"]
    return OtherRun(scores, decided, seconds, chosen, held_out)
