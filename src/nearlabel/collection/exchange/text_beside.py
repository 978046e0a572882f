"""Tags in a text file next to a picture, as other taggers write them: ``a.txt``, ``a.jpg.txt``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nearlabel.collection.exchange.keywords import Keywords, keyword_tags
from nearlabel.common.files import replacing
from nearlabel.common.messages import shown
from nearlabel.common.tag_texts import separated_tags, tag_separator
from nearlabel.datasets.text_lines import DataError, TextFile

_SEPARATORS = (";", ",")  # | is between the levels of a tag


class TextsBeside:
    """The text files of pictures."""

    def files_of(self, picture: Path) -> list[Path]:
        """The existing text files of a picture."""
        names = dict.fromkeys((picture.name + ".txt", picture.stem + ".txt"))
        beside = [picture.with_name(name) for name in names if name != picture.name]
        return [path for path in beside if path.is_file()]

    def read(self, path: Path) -> Keywords:
        """The tags of a text file: one per line, or all on one line separated by ``;`` or commas.

        Raises
        ------
        DataError
        """
        if path.stat().st_size > 2**20:
            raise DataError(str(path), None, "this is too large for a list of tags")
        with TextFile(path) as file:
            lines = [line.strip() for line in file.lines() if line.strip()]
        if len(lines) == 1:
            lines = separated_tags(lines[0], tag_separator(lines, _SEPARATORS))
        return Keywords(keyword_tags(lines))

    def write(self, picture: Path, yes: Sequence[str], no: Sequence[str]) -> bool:
        """Write the tags of a picture next to it, one per line; returns whether that was needed.

        An existing file is updated, otherwise ``a.txt`` is created for ``a.jpg``. A file with
        entries that are neither given nor rejected tags is left as it is.

        Raises
        ------
        DataError
            If the file has other entries or is a link.
        """
        there = self.files_of(picture)
        target = there[0] if there else picture.with_suffix(".txt")
        if target.is_symlink():
            raise DataError(str(target), None, "this is a link; links are not written to")
        if len(yes) == 1 and tag_separator(yes, _SEPARATORS) is not None:
            message = f"the only tag, {shown(yes[0])}, would be read as two"
            raise DataError(str(target), None, message)
        before = {*self.read(target).paths} if there else set()
        if other := before - {*yes, *no}:
            message = f"this has {shown(min(other))}, which the collection lacks: import it first"
            raise DataError(str(target), None, message)
        if before == {*yes}:
            return False
        with replacing(target) as file:
            file.write("".join(f"{tag}\n" for tag in yes).encode())
        return True
