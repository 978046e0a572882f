"""A command as a process: its streams, interrupts, errors and exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, cast

from nearlabel.cli.output import printable, write
from nearlabel.common.extras import install_command

_LONGEST_MESSAGE = 2000  # characters, even if a word of the command has more
typed: ContextVar[Sequence[str]] = ContextVar("typed", default=())  # the words of the command
OUR_ERROR, USER_ERROR, INTERRUPTED, BROKEN_PIPE = 1, 2, 128 + signal.SIGINT, 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code: 0, 2 for a user's error, 130 for Ctrl-C."""
    sys.stdout, sys.stderr = (
        _reliable(stream or _nowhere()) for stream in (sys.stdout, sys.stderr)
    )
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while Python was still importing
        code = _say_error("interrupted", INTERRUPTED)
    sys.exit(code)


def _nowhere() -> io.TextIOWrapper:
    """A stream in place of one that the caller has closed."""
    return open(os.devnull, "w")  # noqa: PTH123


def _reliable(stream: Any) -> Any:
    """A stream that writes everything or fails, and writes ? for characters it cannot encode."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if isinstance(stream.buffer, io.RawIOBase):
        # By PYTHONUNBUFFERED. A raw file may write a part of what it gets, which its text layer
        # does not notice: the rest would be lost if a disk is full or a pipe is closed.
        encoding = stream.encoding
        raw = cast("io.RawIOBase", stream.detach())
        stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding, line_buffering=True)
    stream.reconfigure(errors="replace")
    return stream


def run(arguments: Sequence[str]) -> int:
    """Run a command; its exit code."""
    try:
        import rich  # noqa: F401
        from cyclopts import CycloptsError

        from nearlabel.cli.app import command_line
        from nearlabel.cli.errors import command_of, in_options, options_of, usage_message
    except ImportError as error:
        if error.name not in ("cyclopts", "rich"):  # the packages of the extra "cli"
            raise
        return _say_error(f"the command line needs {error.name}: {install_command('cli')}")
    typed.set(tuple(arguments))
    app = command_line(arguments)
    notes: set[str] = set()

    def in_words(error: object) -> str:
        return in_options(error, options_of(command_of(app, arguments)))

    def note(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in notes:
            notes.add(str(message))
            _say_error(f"note: {in_words(message)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        # Features were brought into the model's order by name when the file was read.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        warnings.filterwarnings("ignore", module=r"PIL\.")  # a picture is read, or left out
        warnings.showwarning = note
        try:
            code = app(list(arguments))
            write(flush=True)
        except CycloptsError as error:
            return _say_error(usage_message(app, error, arguments))
        except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
            _drop_output()
            return BROKEN_PIPE
        except SystemExit as error:  # of rich, which prints the help
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            return BROKEN_PIPE
        except KeyboardInterrupt as error:  # perhaps with a word on what was stored
            return _say_error("; ".join(["interrupted", *map(str, error.args)]), INTERRUPTED)
        except Exception as error:
            if os.environ.get("NEARLABEL_TRACEBACK"):
                raise
            is_ours = not isinstance(
                error, ValueError | OSError | MemoryError | ModuleNotFoundError
            )
            if is_ours and not hasattr(error, "argument"):  # that of a type that is wrong
                return _say_error(
                    f"an error of nearlabel itself, {type(error).__name__}: {error}; please "
                    "report it with what NEARLABEL_TRACEBACK=1 shows",
                    OUR_ERROR,
                )
            dropped = _drop_output()
            reason = in_words(error).strip() or type(error).__name__
            if isinstance(error, OSError) and error.strerror:
                name = error.filename or ("standard output" if dropped else "")
                reason = in_words(f"{name}: {error.strerror}" if name else error.strerror)
                reason += _similar_file(name) if isinstance(error, FileNotFoundError) else ""
            return _say_error(reason)
    return code if isinstance(code, int) else 0


def _similar_file(path: Any) -> str:
    """The end of a message about a file that does not exist: one of a similar name, if any."""
    from nearlabel.common.messages import did_you_mean

    missing = Path(os.fsdecode(path))
    try:
        there = [path.name for path in missing.parent.iterdir()]
    except OSError:  # no folder, or one that may not be listed
        return ""
    return did_you_mean(missing.name, there)


def _drop_output() -> bool:
    """Drop output that cannot be written; Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _say_error(message: str, code: int = USER_ERROR) -> int:
    """Print a message on one line of standard error; the exit code."""
    line = printable(" ".join(message.split()))
    shown = line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"
    sys.stderr.write(f"nearlabel: {shown}\n")
    return code
