"""Tags in a text file next to a picture, as other taggers write them: ``a.txt``, ``a.jpg.txt``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nearlabel.collection.exchange.keywords import tag_names
from nearlabel.common.files import replacing
from nearlabel.common.messages import shown
from nearlabel.common.tag_texts import separated_tags, tag_separator
from nearlabel.datasets.text_lines import DataError, TextFile

_SEPARATORS = (";", ",")  # | is between the levels of a tag


def text_files_of(picture: str | os.PathLike[str]) -> list[Path]:
    """The existing text files of a picture."""
    path = Path(picture)
    names = dict.fromkeys((path.name + ".txt", path.stem + ".txt"))
    return [
        beside
        for beside in map(path.with_name, names)
        if beside.is_file() and beside.name != path.name
    ]


def read_text_tags(path: str | os.PathLike[str]) -> list[str]:
    """The tags of a text file: one per line, or all on one line separated by ``;`` or commas.

    Raises
    ------
    DataError
    """
    if Path(path).stat().st_size > 2**20:
        raise DataError(str(path), None, "this is too large for a list of tags")
    with TextFile(path) as file:
        lines = [line.strip() for line in file.lines() if line.strip()]
    if len(lines) == 1:
        lines = separated_tags(lines[0], tag_separator(lines, _SEPARATORS))
    return list(tag_names(lines))


def write_text_tags(
    picture: str | os.PathLike[str], yes: Iterable[str], no: Iterable[str] = ()
) -> bool:
    """Write the tags of a picture next to it, one per line; returns whether that was needed.

    An existing file is updated, otherwise ``a.txt`` is created for ``a.jpg``. A file with entries
    that are neither given nor rejected tags is left as it is.

    Raises
    ------
    DataError
        If the file has other entries or is a link.
    """
    path, tags = Path(picture), [*yes]
    there = text_files_of(path)
    target = there[0] if there else path.with_suffix(".txt")
    if target.is_symlink():
        raise DataError(str(target), None, "this is a link; links are not written to")
    if len(tags) == 1 and tag_separator(tags, _SEPARATORS) is not None:
        raise DataError(str(target), None, f"the only tag, {shown(tags[0])}, would be read as two")
    before = read_text_tags(target) if there else []
    other = set(before) - {*tags, *no}
    if other:
        message = f"this has {shown(min(other))}, which the collection lacks: import it first"
        raise DataError(str(target), None, message)
    if set(before) == set(tags):
        return False
    with replacing(target) as file:
        file.write("".join(f"{tag}\n" for tag in tags).encode())
    return True
