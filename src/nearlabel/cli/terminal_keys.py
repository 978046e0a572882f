"""Single keys from a terminal, without Enter, and lines in between."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

ENTER, ESCAPE, END = "\n", "\x1b", ""  # END: the input is over


class Keys(Protocol):
    """What a person types."""

    def key(self) -> str:
        """Wait for a key; arrows and the like are `ESCAPE`."""

    def line(self, prompt: str) -> str:
        """Ask for a line; "" at the end of the input."""


@contextmanager
def single_keys() -> Iterator[Keys]:
    """Read keys of the terminal at once, and leave it as it was."""
    if sys.platform == "win32":
        yield _ConsoleKeys()
        return
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        yield _TerminalKeys(terminal, before)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _TerminalKeys:
    def __init__(self, terminal: int, before: list[Any]) -> None:
        self._terminal, self._before = terminal, before
        self._at_once()

    def key(self) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while byte := self._read(1):
            if letter := decoder.decode(byte):
                if letter == ESCAPE:
                    self._skip_rest()
                return ENTER if letter == "\r" else letter
        return END

    def line(self, prompt: str) -> str:
        import termios

        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        try:
            return _line(prompt)
        finally:
            self._at_once()

    def _at_once(self) -> None:
        import termios
        import tty

        tty.setcbreak(self._terminal, termios.TCSADRAIN)  # keys typed ahead are kept

    def _read(self, most: int) -> bytes:
        try:
            return os.read(self._terminal, most)
        except OSError:  # it was closed
            return b""

    def _skip_rest(self) -> None:
        """Read an escape sequence to its end, and not the keys typed after it."""
        import select

        sequence = b""
        while select.select([self._terminal], [], [], 0.05)[0] and (byte := self._read(1)):
            sequence += byte
            begins = sequence in (b"[", b"O")  # as arrows and function keys do
            if not begins and (sequence[:1] != b"[" or b"@" <= byte <= b"~"):
                return


class _ConsoleKeys:
    def key(self) -> str:
        import msvcrt

        letter = str(msvcrt.getwch())  # type: ignore[attr-defined]
        if letter == "\x03":
            raise KeyboardInterrupt
        if letter in "\x00\xe0":  # arrows and the like
            msvcrt.getwch()  # type: ignore[attr-defined]
            return ESCAPE
        return ENTER if letter == "\r" else letter

    def line(self, prompt: str) -> str:
        return _line(prompt)


def _line(prompt: str) -> str:
    try:
        return input(prompt)
    except EOFError:
        return ""
