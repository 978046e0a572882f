"""Files of the folders that were indexed, followed while their collection is served."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from nearlabel.app.served import Served
from nearlabel.collection.folder_watch import STILL_WRITTEN, FolderWatch

_EVERY = 5.0  # seconds between two looks, at least
_REST = 10  # times as long as a look takes is the least time until the next one
_log = logging.getLogger("nearlabel.service")


class _EndedError(Exception):
    """Nobody waits for the rest of a look."""


class FollowedFolders:
    """A thread that looks for new, changed and vanished files until it is told to end."""

    def __init__(self, served: Served, every: float = _EVERY) -> None:
        self._served, self._every = served, every
        self._end = threading.Event()
        self._watches: dict[str, FolderWatch] = {}
        self._missing: set[str] = set()
        self._thread = threading.Thread(target=self._follow, name="folders", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after the files that are being read; the others are found the next time."""
        self._end.set()
        self._thread.join()

    def look(self) -> None:
        """Look at all folders once."""
        collection = self._served.collection
        for root in collection.roots():
            if Path(root) == self._served.settings.uploads.absolute() or self._end.is_set():
                continue
            watch = self._watches.setdefault(root, FolderWatch(root))
            try:
                if watch.has_news(collection, STILL_WRITTEN):
                    found = watch.look(collection, STILL_WRITTEN, self._go_on)
                    done = f"{found.new} new, {found.changed} changed, {found.gone} gone"
                    _log.info("files of a folder: %s", done, extra={"path": root})
                    for name, why in found.skipped:
                        _log.warning("a file was not read: it %s", why, extra={"path": name})
                self._missing.discard(root)
            except (OSError, ValueError) as error:  # a disk that is not mounted may come back
                if root not in self._missing:
                    why = getattr(error, "strerror", None) or str(error)
                    _log.warning("a folder was not looked at: %s", why, extra={"path": root})
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
                _log.exception("folders are not followed any more")
                return
            pause = max(self._every, _REST * (time.monotonic() - begin))
