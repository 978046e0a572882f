"""A folder that is scanned repeatedly, so that its collection follows its files."""

from __future__ import annotations

import os
import time

from nearlabel.collection.collection import Collection
from nearlabel.collection.folder_scan import FileStamp
from nearlabel.collection.indexing import IndexPlan, IndexReport, plan_index, run_index
from nearlabel.collection.item_features import Compute, item_features
from nearlabel.common.progress import Progress

STILL_WRITTEN = 10**9
"""Nanoseconds after which a watched file is considered complete."""


class FolderWatch:
    """What is known about a folder from its last scan.

    A file that existed then and is not an item was undone or forgotten: it is not added again until
    it changes. The same holds for a file that could not be read.

    Parameters
    ----------
    folder : path
    n_jobs : int, optional
        Threads that read files; -1 is all cores.
    """

    def __init__(self, folder: str | os.PathLike[str], *, n_jobs: int | None = None) -> None:
        self._folder, self._n_jobs = folder, n_jobs
        self._compute: Compute | None = None
        self._seen: dict[str, FileStamp] = {}

    def has_news(self, collection: Collection, patience_ns: int = 0) -> bool:
        """Whether files are new, changed or gone."""
        begin = time.time_ns()
        plan = self._plan(collection, patience_ns)
        if not plan:
            self._note(plan, begin, patience_ns)
        return bool(plan)

    def look(
        self, collection: Collection, patience_ns: int = 0, progress: Progress | None = None
    ) -> IndexReport:
        """Update a collection from the folder."""
        begin, settings = time.time_ns(), collection.settings
        plan = self._plan(collection, patience_ns)
        if plan and self._compute is None:
            self._compute = item_features(settings.kind, settings.features, n_jobs=self._n_jobs)
        report = run_index(collection, plan, self._compute, n_jobs=self._n_jobs, progress=progress)
        self._note(plan, begin, patience_ns)
        return report

    def _plan(self, collection: Collection, patience_ns: int) -> IndexPlan:
        return plan_index(collection, self._folder, passed_over=self._seen, patience_ns=patience_ns)

    def _note(self, plan: IndexPlan, begin: int, patience_ns: int) -> None:
        """Record which files exist, except those that may have been too recent to be read."""
        youngest = begin - patience_ns - 10**9  # clocks may differ by a second
        self._seen = {
            path: stamp
            for path, stamp in plan.scan.files.items()
            if not patience_ns or stamp.mtime_ns < youngest
        }
