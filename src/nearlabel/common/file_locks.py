"""Locks on open files, so that only one process writes at a time."""

from __future__ import annotations

import os
import sys
from io import FileIO
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    _PLACE = 2**40  # a locked byte cannot be read, so lock one beyond the end of any file

    def try_lock(file: FileIO) -> bool:
        """Whether this open file got the lock; it has it until it is closed."""
        before = file.tell()
        file.seek(_PLACE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(before)
        return True
else:
    import fcntl

    def try_lock(file: FileIO) -> bool:
        """Whether this open file got the lock; it has it until it is closed."""
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_file_of(file: FileIO, path: str | os.PathLike[str]) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(path).stat())
    except FileNotFoundError:
        return False
