"""Runs of other learners, kept in files so that an hour of work is not repeated."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.files import NONSENSE, FileError, read_stored, write_tree
from nearlabel.common.user_cache import cache_folder


@dataclass(frozen=True)
class OtherRun:
    """The predictions of another learner for test rows.

    Attributes
    ----------
    scores : ndarray, shape (m, q), or None
        Scores that rank the labels; None if the run did not finish.
    decided : ndarray of bool, shape (m, q), or None
        The labels that it predicts.
    seconds : float
        CPU time, including the choice of parameters.
    chosen : dict
        The chosen parameters.
    held_out : float or None
        The score on held-out training rows by which they were chosen; greater is better.
    refusal : str or None
        Why there are no predictions.
    version : str
        Version of the learner's package.
    """

    scores: Any
    decided: Any
    seconds: float
    chosen: dict[str, Any]
    held_out: float | None = None
    refusal: str | None = None
    version: str = ""

    @classmethod
    def refused(cls, seconds: float, why: str) -> OtherRun:
        """A run without predictions."""
        return cls(None, None, seconds, {}, refusal=why)


class KeptRuns:
    """A folder with one file per run, written completely or not at all.

    A damaged file counts as missing.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.path = cache_folder() / "results" / "others" if folder is None else Path(folder)

    def get(self, key: str, shape: tuple[int, int]) -> OtherRun | None:
        """The run with this key if it is kept and has predictions of this shape, else None."""
        try:
            tree = read_stored(self._file(key)).tree
            return _checked(OtherRun(**tree), shape)
        except (OSError, FileError, *NONSENSE):
            return None

    def add(self, key: str, run: OtherRun) -> None:
        """Keep a run; it is on disk when this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_tree(self._file(key), vars(run))

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.run"


def _checked(run: OtherRun, shape: tuple[int, int]) -> OtherRun:
    """Check the fields of a run; raise a ValueError or one of `NONSENSE`."""
    known = [isinstance(run.chosen, dict), isinstance(run.version, str), run.seconds >= 0]
    known.append(run.held_out is None or math.isfinite(run.held_out))
    if run.refusal is not None:
        known.append(isinstance(run.refusal, str) and run.refusal.isprintable())
    else:
        known.append(run.scores.shape == run.decided.shape == shape)
        known.append(run.decided.dtype == bool and bool(np.isfinite(run.scores).all()))
    if not all(known):
        raise ValueError("not a valid run")
    return run


def run_key(settings: Sequence[Any], matrices: Sequence[Any]) -> str:
    """A digest of the data and of the settings of a learner."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for matrix in matrices:
        is_sparse = sparse.issparse(matrix)
        parts = (matrix.data, matrix.indices, matrix.indptr) if is_sparse else (matrix,)
        digest.update(f"{matrix.shape}{is_sparse}".encode())
        for part in parts:
            digest.update(f"{part.dtype}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:40]
