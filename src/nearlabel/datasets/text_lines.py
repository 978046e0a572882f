"""Text files read line by line: plain, gzipped or from standard input, in bounded memory."""

from __future__ import annotations

import codecs
import gzip
import io
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Self

from nearlabel.common.arrays import Array, text_array
from nearlabel.common.messages import one_line, shown

# Called with (bytes read, total bytes), or (lines read, None) if the size is not known.
Progress = Callable[[int, int | None], None]

# Byte-order marks of encodings whose lines do not end in the single byte "\n", longest first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
LABEL_MARK = "label:"  # before the name of a label that could be mistaken for a feature
LONGEST_LINE = 2**24  # bytes: a longer line means a damaged or hostile file
_LETTERS_AT_ONCE = 2**15
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)  # errors of damaged compressed files


class DataError(ValueError):
    """A file is not valid: which one, where, and what was expected.

    Parameters
    ----------
    file : str
    line : int or None
        Counted from 1.
    message : str
    """

    def __init__(self, file: str, line: int | None, message: str) -> None:
        where = file if line is None else f"{file}, line {line}"
        super().__init__(one_line(f"{where}: {message}", 600))
        self.file, self.line, self.message = file, line, message

    def __reduce__(self) -> tuple[type[Self], tuple[str, int | None, str]]:
        return type(self), (self.file, self.line, self.message)


class Source:
    """A file, as error messages refer to it: its name, and the line that was read last."""

    def __init__(self, name: str) -> None:
        self.name, self.line = name, 0

    def error(self, message: str, line: int | None = None) -> DataError:
        """An error at the line that was read last, or at another one."""
        return DataError(self.name, self.line if line is None else line, message)


class TextFile(Source):
    """The lines of a file, or of standard input ("-").

    A gzipped file is recognized by its content, and so are UTF-16 and UTF-32 by a byte-order mark.
    """

    def __init__(
        self,
        path: os.PathLike[str] | str,
        encoding: str = "utf-8",
        progress: Progress | None = None,
    ) -> None:
        super().__init__("standard input" if str(path) == "-" else str(path))
        self._path, self._encoding, self._progress = path, encoding, progress
        self._lines = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, if it was not read to its end."""
        self._lines.close()

    def lines(self) -> Iterator[str]:
        """The lines, with their line ends; they can be read once."""
        return self._lines

    def blocks(self) -> Iterator[list[str]]:
        """The lines that have not been read yet, many at once; `line` is that of the last one."""
        block: list[str] = []
        size = 0
        try:
            for text in self._lines:
                block.append(text)
                size += len(text)
                if size >= _LETTERS_AT_ONCE:
                    yield block
                    block, size = [], 0
        except DataError:  # the lines before it may have an error, too
            yield block
            raise
        yield block

    def _read(self) -> Generator[str]:
        with ExitStack() as opened:
            try:
                raw: Any = sys.stdin.buffer
                if str(self._path) != "-":
                    raw = opened.enter_context(Path(self._path).open("rb"))
                total, is_gzipped = _size(raw), raw.peek(2)[:2] == b"\x1f\x8b"
                stream: Any = gzip.GzipFile(fileobj=raw) if is_gzipped else raw
                begin = stream.peek(4)
            except _DAMAGED:
                raise self._damaged(1) from None
            marked = (encoding for mark, encoding in _MARKS.items() if begin.startswith(mark))
            encoding = next(marked, self._encoding)
            is_wide = "\n".encode(encoding) != b"\n"
            if is_wide:  # decoded first, then divided into lines
                stream = io.TextIOWrapper(stream, encoding, newline="\n")
                opened.callback(stream.detach)  # it would close standard input
            for line in count(1):
                try:
                    content = stream.readline(LONGEST_LINE)
                    if not content:
                        return
                    self.line = line
                    if len(content) == LONGEST_LINE and content[-1:] not in ("\n", b"\n"):
                        raise self.error(f"the line is longer than {LONGEST_LINE // 2**20} MiB")
                    if not is_wide and line == 1:
                        content = content.removeprefix(codecs.BOM_UTF8)
                    text: str = content if is_wide else content.decode(encoding)
                except _DAMAGED:
                    raise self._damaged(line) from None
                except UnicodeError:
                    hint = "was it saved in another encoding, such as encoding='latin-1'?"
                    raise self.error(f"not {encoding} text; {hint}", line) from None
                if "\0" in text:
                    hint = "not a text file, or in another encoding, such as encoding='utf-16'"
                    raise self.error(f"contains a NUL byte: {hint}")
                yield text
                if self._progress is not None and line % 1000 == 0:
                    self._progress(line if total is None else raw.tell(), total)

    def _damaged(self, line: int) -> DataError:
        return self.error("the compressed file is damaged or truncated here", line)


def _size(raw: BinaryIO) -> int | None:
    """Bytes of a file; None for a pipe and the like."""
    try:
        status = os.fstat(raw.fileno())
    except (OSError, io.UnsupportedOperation):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def number(value: str | float) -> float:
    """A finite number, or a ValueError; stricter than `float` for strings."""
    odd = isinstance(value, str) and ("_" in value or not value.isascii())
    result = math.nan if odd else float(value)
    if not math.isfinite(result):
        raise ValueError(f"expected a finite number; got {shown(str(value))}")
    return result


def truth(text: str) -> bool | None:
    """The meaning of a word for yes or no; None if it is neither."""
    word = text.strip().lower()
    if word in {"1", "true", "yes", "t", "y"}:
        return True
    return False if word in {"0", "false", "no", "f", "n"} else None


def column_names(names: list[str]) -> Array | None:
    """Names as an array; None if they are just the columns' numbers."""
    if all(name == str(place) for place, name in enumerate(names)):
        return None
    return text_array(names)


def names_or_numbers(names: Array | None, count: int) -> list[str]:
    """The names of columns; their numbers if they have none."""
    return [str(name) for name in (range(count) if names is None else names.tolist())]
