"""The files of indexed folders, followed while their collection is served."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from nearlabel.app.served import Served
from nearlabel.collection.folder_watch import STILL_WRITTEN, FolderWatch

_EVERY = 5.0  # minimum seconds between two scans
_log = logging.getLogger("nearlabel.service")


class _EndedError(Exception):
    """The service ends before a scan is complete."""


class FollowedFolders:
    """A thread that scans for new, changed and deleted files until it is stopped."""

    def __init__(self, served: Served, every: float = _EVERY) -> None:
        self._served, self._every = served, every
        self._end = threading.Event()
        self._watches: dict[str, FolderWatch] = {}
        self._missing: set[str] = set()
        self._thread = threading.Thread(target=self._follow, name="folders", daemon=True)

    def start(self) -> None:
        """Start scanning."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the files that are being read; the others are found the next time."""
        self._end.set()
        self._thread.join()

    def look(self) -> None:
        """Scan all folders once."""
        collection = self._served.collection
        for root in collection.roots():
            if Path(root) == self._served.settings.uploads.absolute() or self._end.is_set():
                continue
            watch = self._watches.setdefault(root, FolderWatch(root))
            try:
                if watch.has_news(collection, STILL_WRITTEN):
                    report = watch.look(collection, STILL_WRITTEN, self._go_on)
                    done = f"{report.new} new, {report.changed} changed, {report.gone} gone"
                    _log.info("folder scanned: %s", done, extra={"path": root})
                    for name, why in report.skipped:
                        _log.warning("a file was skipped: it %s", why, extra={"path": name})
                self._missing.discard(root)
            except (OSError, ValueError) as error:  # a disk that is not mounted may come back
                if root not in self._missing:
                    why = getattr(error, "strerror", None) or str(error)
                    _log.warning("a folder could not be scanned: %s", why, extra={"path": root})
                self._missing.add(root)

    def _go_on(self, *_: object) -> None:
        if self._end.is_set():
            raise _EndedError

    def _follow(self) -> None:
        pause = 0.0
        while not self._end.wait(pause):
            begin = time.monotonic()
            try:
                self.look()
            except _EndedError:
                return
            except Exception:
                _log.exception("folders are no longer followed")
                return
            pause = max(self._every, 10 * (time.monotonic() - begin))  # a tenth of the time
