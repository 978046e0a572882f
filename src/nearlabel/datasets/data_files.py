"""A file of a data set, and the options to read it with."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from pathlib import Path

from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.datasets.text_lines import Progress, TextFile

NOMINALS = ("onehot", "code")


@dataclass(frozen=True)
class ReadOptions:
    """The options that `load` documents, with its defaults; a reader uses those of its format."""

    labels: tuple[str, ...] | None = None
    tags: str | None = None
    separator: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    gaps: bool | str | tuple[str, ...] = False
    frame: bool = False
    nominal: str = "onehot"
    xml: str | os.PathLike[str] | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for key in ("labels", "ignore", "features", "text", "categories", "gaps"):
            names = getattr(self, key)
            if key == "gaps" and names == "found":
                continue
            if isinstance(names, str):
                raise TypeError(f"{key} must be a list of names; got the string {names!r}")
            if names is not None and not isinstance(names, bool):
                object.__setattr__(self, key, tuple(names))
        if self.delimiter == "\\t":  # as it is typed in a shell
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            message = (
                "delimiter must be one character, and neither a quote, a line break nor a NUL; "
                f"got {self.delimiter!r}"
            )
            raise ArgumentError(message, "delimiter")
        if self.tags is not None and self.labels:
            raise ValueError(
                "tags= and labels= cannot be used together: labels are in one column or in several"
            )
        check_choice(self.nominal, "nominal", NOMINALS)
        check_encoding(self.encoding)

    def check_supported(self, supported: Collection[str], format: str) -> None:
        """Raise an error for an option that a format does not support.

        Any format can be read without its labels, and with only the features that a model knows,
        whatever the model's other options for them. Gaps that are taken where they are found need
        not be possible.
        """
        heeded = {*supported, "features", *(() if self.labels else ("labels",))}
        heeded |= {"gaps"} if self.gaps == "found" else set()
        if self.features is not None:
            heeded |= {"text", "categories", "gaps", "frame"}
        for option in fields(self):
            value = getattr(self, option.name)
            if value and value != option.default and option.name not in heeded:
                message = f"is not supported for the format {format!r}; got {value!r}"
                raise ArgumentError(f"{option.name}= {message}", option.name)


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, and how to read it."""

    path: Path  # "-" for standard input
    options: ReadOptions = field(default_factory=ReadOptions)
    progress: Progress | None = None

    @property
    def title(self) -> str:
        """Its name in messages."""
        return "standard input" if str(self.path) == "-" else str(self.path)

    @property
    def stem(self) -> str:
        """Its name without the suffix of its format."""
        return re.sub(r"\.\w+$", "", self.path.name.removesuffix(".gz"))

    def text(self) -> TextFile:
        """Its lines, to be read and closed."""
        return TextFile(self.path, self.options.encoding, self.progress)

    def first_line(self) -> str:
        """Its first line that is not blank; "" if it is not text."""
        try:
            with self.text() as file:
                return next(filter(str.strip, file.lines()), "")
        except ValueError:
            return ""

    def beside(self, *names: str) -> TextFile | None:
        """The first of some files that exists beside it; standard input has none."""
        for name in names if str(self.path) != "-" else ():
            if (path := self.path.with_name(name)).is_file():
                return TextFile(path, self.options.encoding)
        return None


def check_encoding(encoding: str) -> None:
    """Raise an error unless it is an encoding of text."""
    try:
        is_unicode = codecs.lookup(encoding).name.startswith("utf")
        is_known = "\n".encode(encoding) == b"\n" or is_unicode
    except (LookupError, UnicodeError, TypeError):
        is_known = False
    if not is_known:
        message = "encoding must be a text encoding such as 'utf-8', 'latin-1' or 'utf-16'"
        raise ArgumentError(f"{message}; got {encoding!r}", "encoding")
