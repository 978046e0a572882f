"""The command line: ``nearlabel VERB …``.

Nothing heavy is imported before a verb runs, so that help comes at once.
"""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

_OPTIONS = "format|labels|tags|separator|id|ignore|nominal|xml|delimiter|encoding|split|scale"
_AGAIN_AFTER = 1.0  # seconds until an interrupt that nobody heard is told again
OUR_ERROR, USER_ERROR, INTERRUPTED, BROKEN_PIPE = 1, 2, 128 + signal.SIGINT, 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code: 0, 2 for a user's error, 130 for Ctrl-C."""
    # Imports make objects that stay: to look for garbage among them only takes time.
    gc.set_threshold(100_000)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ± gets a ? for it
            stream.reconfigure(errors="replace")
    with _insistent_interrupts():
        try:
            code = run(sys.argv[1:] if arguments is None else arguments)
        except KeyboardInterrupt:  # while Python was still importing
            code = _fail("interrupted", INTERRUPTED)
    sys.exit(code)


@contextmanager
def _insistent_interrupts() -> Iterator[None]:
    """Let Ctrl-C be heard even where a library that is being imported swallows it.

    Some modules catch everything that happens while they load, an interrupt too. So it is raised
    again after a second, until the command ends.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not in_main_thread:  # Windows, other threads
        yield
        return

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for one, handler in before.items():
            signal.signal(one, handler)


def run(arguments: Sequence[str]) -> int:
    """Run a command; its exit code."""
    try:
        from cyclopts import CycloptsError

        from nearlabel.cli.app import app
    except ImportError as error:
        if error.name not in ("cyclopts", "rich"):
            raise
        return _fail("the command line needs the extra 'cli': pip install 'nearlabel[cli]'")
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        # Features were brought into the model's order by name when the file was read.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        warnings.showwarning = _Notes()
        try:
            code = app(
                list(arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
            sys.stdout.flush()
        except CycloptsError as error:
            return _fail(str(error))
        except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except KeyboardInterrupt:
            return _fail("interrupted", INTERRUPTED)
        except Exception as error:
            if os.environ.get("NEARLABEL_TRACEBACK"):
                raise
            is_the_users = isinstance(error, ValueError | TypeError | OSError | MemoryError)
            if is_the_users or type(error).__module__.startswith("cyclopts"):
                return _fail(_reason(error))
            return _fail(
                f"an error of nearlabel itself, {type(error).__name__}: {error}; please report it "
                "with what NEARLABEL_TRACEBACK=1 shows",
                OUR_ERROR,
            )
    return code if isinstance(code, int) else 0


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    # Options have two dashes here.
    return re.sub(rf"\b({_OPTIONS})=", r"--\1 ", str(error)).strip() or type(error).__name__


def _fail(message: str, code: int = USER_ERROR) -> int:
    sys.stderr.write(f"nearlabel: {' '.join(message.split())}\n")
    return code


class _Notes:
    """Warnings as notes of one line, each of them once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, message: Warning | str, *_: Any, **__: Any) -> None:
        line = f"nearlabel: note: {' '.join(str(message).split())}\n"
        if line not in self._told:
            self._told.add(line)
            sys.stderr.write(line)
