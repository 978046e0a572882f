"""A folder that is looked at again and again, so that its collection follows its files."""

from __future__ import annotations

import os

from nearlabel.collection.collection import Collection
from nearlabel.collection.folder_scan import FileStamp
from nearlabel.collection.indexing import IndexPlan, IndexReport, plan_index, run_index
from nearlabel.collection.item_features import ItemFeatures, item_features
from nearlabel.common.progress import Progress

STILL_WRITTEN = 10**9
"""Nanoseconds after which a file that is watched is taken for complete."""


class FolderWatch:
    """What is known of a folder from the last time that it was looked at.

    Parameters
    ----------
    folder : path
    n_jobs : int, optional
        Threads that read files; -1 is all cores.
    """

    def __init__(self, folder: str | os.PathLike[str], *, n_jobs: int | None = None) -> None:
        self._folder, self._n_jobs = folder, n_jobs
        self._features: ItemFeatures | None = None
        self._passed_over: dict[str, FileStamp] = {}

    def has_news(self, collection: Collection, patience_ns: int = 0) -> bool:
        """Whether files are new, changed or gone; those that cannot be read are told once."""
        return bool(self._plan(collection, patience_ns))

    def look(
        self, collection: Collection, patience_ns: int = 0, progress: Progress | None = None
    ) -> IndexReport:
        """Bring a collection up to date with the folder."""
        plan = self._plan(collection, patience_ns)
        report = run_index(
            collection, plan, self._made(collection), n_jobs=self._n_jobs, progress=progress
        )
        stamps = plan.scan.files
        skipped = {*self._passed_over, *(path for path, _ in report.skipped)}
        self._passed_over = {path: stamps[path] for path in skipped if path in stamps}
        return report

    def _plan(self, collection: Collection, patience_ns: int) -> IndexPlan:
        return plan_index(
            collection,
            self._folder,
            self._made(collection).files,
            passed_over=self._passed_over,
            patience_ns=patience_ns,
        )

    def _made(self, collection: Collection) -> ItemFeatures:
        if self._features is None:
            settings = collection.settings
            self._features = item_features(settings.kind, settings.features, n_jobs=self._n_jobs)
        return self._features
