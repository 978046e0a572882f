"""Single keys from a terminal, without Enter, and lines in between."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ENTER, ESCAPE, END = "\n", "\x1b", ""  # END: the input is over


@contextmanager
def single_keys() -> Iterator[Keys]:
    """Read keys of the terminal at once, and leave it as it was."""
    if sys.platform == "win32":
        yield _WindowsKeys()
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield _TerminalKeys(before)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


class Keys:
    """What a person types."""

    def key(self) -> str:
        """Wait for a key; arrows and the like are `ESCAPE`."""
        raise NotImplementedError

    def line(self, prompt: str) -> str:
        """Ask for a line; "" at the end of the input."""
        try:
            return input(prompt)
        except EOFError:
            return ""


class _TerminalKeys(Keys):
    def __init__(self, before: list[Any]) -> None:
        self._before = before  # the settings of the terminal
        self._at_once()

    def key(self) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while byte := _byte():
            if letter := decoder.decode(byte):
                if letter == ESCAPE:
                    _skip_rest()
                return ENTER if letter == "\r" else letter
        return END

    def line(self, prompt: str) -> str:
        import termios

        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
        try:
            return super().line(prompt)
        finally:
            self._at_once()

    def _at_once(self) -> None:
        import termios
        import tty

        tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # keys typed ahead are kept


def _byte() -> bytes:
    try:
        return os.read(sys.stdin.fileno(), 1)
    except OSError:  # the terminal was closed
        return b""


def _skip_rest() -> None:
    """Read an escape sequence to its last byte, and not the keys typed after it."""
    import select

    while select.select([sys.stdin], [], [], 0.05)[0]:
        byte = _byte()
        if not byte or byte not in b"[O;0123456789":
            return


class _WindowsKeys(Keys):
    def key(self) -> str:
        import msvcrt

        letter = str(msvcrt.getwch())  # type: ignore[attr-defined]
        if letter == "\x03":
            raise KeyboardInterrupt
        if letter in "\x00\xe0":  # arrows and the like
            msvcrt.getwch()  # type: ignore[attr-defined]
            return ESCAPE
        return ENTER if letter == "\r" else letter
