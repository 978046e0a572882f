"""Export of the tags of a collection."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.collection.exchange.own_files import (
    FolderSidecars,
    files_there,
    problem_with,
)
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.exchange.text_beside import write_text_tags
from nearlabel.collection.exchange.xmp_sidecars import update_sidecar
from nearlabel.common.messages import encodable
from nearlabel.common.progress import Progress
from nearlabel.datasets.text_lines import DataError
from nearlabel.features.picture_formats import HEAD, format_of

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.records import Item


def tagged_files(collection: Collection) -> Iterator[TaggedFile]:
    """All items with their decisions.

    A file is named by its path in the indexed folder, or by its absolute path if several folders
    were indexed; an item without a file by its name.
    """
    several, items = len(collection.roots()) > 1, collection.items()
    paths = {file.path for item in items for file in item.files}
    for item in items:
        there = sorted(item.files, key=lambda file: file.is_missing)
        names = [os.path.join(file.root, file.path) if several else file.path for file in there]  # noqa: PTH118
        names = [encodable(name) for name in names] or [_name(item, paths)]
        places = files_there(item)
        yield TaggedFile(
            names[0],
            tuple(item.yes),
            tuple(item.no),
            item.content,
            tuple(names[1:]),
            item.id,
            places[0] if places else None,
        )


def _name(item: Item, paths: Container[str]) -> str:
    """The name of an item without a file, distinct from a file that took its place."""
    return f"{item.name} (item {item.id})" if item.name in paths else item.name


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
    collection: Collection, *, texts: bool = False, progress: Progress | None = None
) -> BesideReport:
    """Write the tags of pictures to files next to them: XMP sidecars or text files.

    Parameters
    ----------
    collection : Collection
    texts : bool, default=False
        Write text files instead of sidecars.
    progress : callable, optional
        Called with (items done, total items).
    """
    report, folders, items = BesideReport(), FolderSidecars(), collection.items()
    for count, item in enumerate(items, 1):
        if progress is not None:
            progress(count, len(items))
        if not item.tags:
            continue
        paths = files_there(item)
        if not paths:
            report.missing.append(item.name)
        for path in paths:
            try:
                _check_picture(path)
                is_new = (
                    write_text_tags(path, item.yes, item.no)
                    if texts
                    else _write_sidecars(item, path, folders)
                )
            except (ValueError, OSError) as error:
                report.problems.append(problem_with(path, error))
                continue
            report.written += is_new
            report.unchanged += not is_new
    return report


def _check_picture(path: str) -> None:
    """Refuse to write next to a file that is missing or not a picture."""
    if not Path(path).is_file():
        raise DataError(path, None, "this file no longer exists")
    with Path(path).open("rb") as file:
        if format_of(file.read(HEAD), path) is None:
            raise DataError(path, None, "this is no longer a picture")


def _write_sidecars(item: Item, path: str, folders: FolderSidecars) -> bool:
    """Update the sidecars of a picture; returns whether one was written.

    The list in a sidecar is complete: it also has the tags from other sidecars and from inside the
    picture. If these already agree with all decisions, no sidecar is created.
    """
    keywords, problems = folders.keywords(path)
    if problems:  # the list would be incomplete
        raise ValueError(problems[0])
    there, yes, no = keywords.all_tags(), item.yes, item.no
    says_so = not (set(yes) - set(there)) and not (set(no) & set(there))
    targets = folders.of(path).to_write(os.path.basename(path))  # noqa: PTH119
    is_new = [
        update_sidecar(target, yes, no, also=there)
        for target in targets
        if target.exists() or target.is_symlink() or (yes and not says_so)
    ]
    return any(is_new)
