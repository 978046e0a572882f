"""The files that a data set is read from: where they are, and how to read them."""

from __future__ import annotations

import codecs
import os
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import IO

from nearlabel.common.messages import shown
from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.datasets.text_lines import DataError, Progress, TextFile

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
class Place:
    """Files by their names: of a folder, or of a zip archive, which is never unpacked to disk."""

    path: Path
    members: Mapping[str, zipfile.ZipInfo] | None = None  # of an archive

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file() if self.members is None else name in self.members

    def __iter__(self) -> Iterator[str]:
        if self.members is not None:
            return iter(sorted(self.members))
        paths = self.path.iterdir() if self.path.is_dir() else ()
        return iter(sorted(path.name for path in paths if path.is_file()))

    def text(self, name: str, encoding: str, progress: Progress | None = None) -> TextFile:
        """One of the files, to be read."""
        if self.members is None:
            return TextFile(self.path / name, encoding, progress)
        member = self.members[name]

        @contextmanager
        def opened() -> Iterator[IO[bytes]]:
            check_compression(member)
            with zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
                yield file

        return TextFile(f"{self.path}/{member.filename}", encoding, progress, opened)


def archive_at(path: Path) -> Place:
    """The files of a zip archive, in whichever of its folders they are, but for hidden ones."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
    except zipfile.BadZipFile as error:
        raise DataError(str(path), None, f"this is not a zip archive: {error}") from None
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        place = PurePosixPath(info.filename)
        if place.name.startswith(".") or place.parts[0] == "__MACOSX":
            continue
        if place.name in members:
            raise DataError(str(path), None, f"it has two files named {shown(place.name)}")
        members[place.name] = info
    return Place(path, members)


def check_compression(member: zipfile.ZipInfo) -> None:
    """Raise an error for unusual methods: with LZMA, a file decides how much memory is used."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("its compression method in the archive is neither stored nor deflated")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, the files beside it, and how to read them."""

    place: Place
    name: str  # "-" for standard input
    options: ReadOptions = field(default_factory=ReadOptions)
    progress: Progress | None = None

    @property
    def title(self) -> str:
        """Its name in messages."""
        return "standard input" if self.name == "-" else str(self.place.path / self.name)

    @property
    def stem(self) -> str:
        """Its name without the suffix of its format."""
        return re.sub(r"\.\w+$", "", self.name.removesuffix(".gz"))

    def text(self) -> TextFile:
        """Its lines, to be read and closed."""
        return self.place.text(self.name, self.options.encoding, self.progress)

    def first_line(self) -> str:
        """Its first line that is not blank; "" if it is not text."""
        try:
            with self.text() as file:
                return next(filter(str.strip, file.lines()), "")
        except ValueError:
            return ""

    def beside(self, *names: str) -> TextFile | None:
        """The first of some files that exists beside it; standard input has none."""
        for name in names if self.name != "-" else ():
            if name in self.place:
                return self.place.text(name, self.options.encoding)
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
