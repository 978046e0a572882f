"""Tags inside and next to the pictures of a collection: XMP sidecars, metadata, text files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol

from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.exchange.text_beside import TextsBeside
from nearlabel.collection.exchange.xmp_sidecars import Sidecars
from nearlabel.common.progress import Progress
from nearlabel.datasets.text_lines import DataError
from nearlabel.features.picture_formats import HEAD, format_of

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.records import Item


class BesideFormat(Protocol):
    """Files next to pictures that have their tags."""

    def files_of(self, picture: Path) -> list[Path]:
        """The existing ones of a picture."""

    def read(self, path: Path) -> Keywords:
        """The keywords in one of them; ValueError, with its name, if it is not valid."""

    def write(self, picture: Path, yes: Sequence[str], no: Sequence[str]) -> bool:
        """Update the files of a picture; returns whether that was needed."""


BESIDE: dict[str, Callable[[], BesideFormat]] = {"sidecars": Sidecars, "texts": TextsBeside}


def read_beside(
    collection: Collection,
    formats: Iterable[str],
    problems: list[str],
    *,
    progress: Progress | None = None,
) -> Iterator[TaggedFile]:
    """The tags stored inside and next to a collection's own files.

    Parameters
    ----------
    collection : Collection
    formats : iterable of str
        Keys of `BESIDE`.
    problems : list of str
        Receives a message for each file that cannot be read.
    progress : callable, optional
        Called with (items done, total items).
    """
    readers, items = [BESIDE[name]() for name in formats], collection.items()
    for count, item in enumerate(items, 1):
        for picture in files_there(item):
            tags: dict[str, None] = {}
            for reader in readers:
                keywords = Keywords()
                for path in reader.files_of(picture):
                    try:
                        keywords += reader.read(path)
                    except (ValueError, OSError) as error:
                        problems.append(_problem_with(path, error))
                tags |= dict.fromkeys(keywords.tags())
            if tags:
                yield TaggedFile(str(picture), (*tags,), id=item.id)
        if progress is not None:
            progress(count, len(items))


@dataclass
class BesideReport:
    """What was written next to pictures.

    Attributes
    ----------
    written, unchanged : int
        Pictures.
    missing : list of str
        Names of tagged items whose files are missing.
    problems : list of str
        What was not written, with the reason.
    """

    written: int = 0
    unchanged: int = 0
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def write_beside(
    collection: Collection, format: str, *, progress: Progress | None = None
) -> BesideReport:
    """Write the tags of pictures to files next to them.

    Parameters
    ----------
    collection : Collection
    format : str
        A key of `BESIDE`.
    progress : callable, optional
        Called with (items done, total items).
    """
    report, writer, items = BesideReport(), BESIDE[format](), collection.items()
    for count, item in enumerate(items, 1):
        if progress is not None:
            progress(count, len(items))
        if not item.tags:
            continue
        pictures = files_there(item)
        if not pictures:
            report.missing.append(item.name)
        for picture in pictures:
            try:
                _check_picture(picture)
                is_new = writer.write(picture, item.yes, item.no)
            except (ValueError, OSError) as error:
                report.problems.append(_problem_with(picture, error))
                continue
            report.written += is_new
            report.unchanged += not is_new
    return report


def files_there(item: Item) -> list[Path]:
    """The paths of an item's files that existed at the last indexing.

    A path that leaves its folder was put into the collection by somebody else and is skipped.
    """
    return [
        Path(file.root, file.path)
        for file in item.files
        if not file.is_missing
        and not PurePath(file.path).is_absolute()
        and ".." not in PurePath(file.path).parts
    ]


def _check_picture(path: Path) -> None:
    """Refuse to write next to a file that is missing or not a picture."""
    if not path.is_file():
        raise DataError(str(path), None, "this file no longer exists")
    with path.open("rb") as file:
        if format_of(file.read(HEAD), str(path)) is None:
            raise DataError(str(path), None, "this is no longer a picture")


def _problem_with(path: Path, error: Exception) -> str:
    """Why a file cannot be read or written, including its name."""
    if isinstance(error, OSError):
        return f"{path}: {error.strerror or error}"
    return str(error)  # names the file
