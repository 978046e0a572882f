"""Tags from outside become decisions of a collection, in one change that can be undone.

A tag that somebody said «no» to is not given again, nor is one taken away that somebody gave: what
was decided here counts more than what a file says, unless the import is told to overrule.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.collection.exchange.own_files import plain_text
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.tag_names import tag_name
from nearlabel.common.messages import shown

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.records import Item

_AMBIGUOUS = -1


class Kept(NamedTuple):
    """A decision of the collection that a file contradicts, and that stays."""

    id: int
    file: str
    tag: str
    is_yes: bool  # what the collection says


@dataclass
class ImportReport:
    """What an import has done.

    Attributes
    ----------
    files : int
        Files with tags, or with tags that they have not.
    given, rejected : int
        New decisions: tags that items now have, and that they now were said not to have.
    known : int
        What was decided so already.
    kept : list of Kept
        What was decided otherwise, and stays so.
    overruled : int
        What was decided otherwise, and was changed.
    unmatched : list of (file, reason)
        Files that are no item, or could be several.
    problems : list of str
        What could not be read, each with the reason.
    """

    files: int = 0
    given: int = 0
    rejected: int = 0
    known: int = 0
    overruled: int = 0
    kept: list[Kept] = field(default_factory=list)
    unmatched: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def import_files(
    collection: Collection,
    files: Iterable[TaggedFile],
    *,
    beside: str | os.PathLike[str] | None = None,
    overrule: bool = False,
    report: ImportReport | None = None,
    group: int | None = None,
) -> ImportReport:
    """Give the items of a collection the tags of files, in one change.

    Parameters
    ----------
    collection : Collection
    files : iterable of TaggedFile
    beside : path, optional
        The folder of the table that names the files: names may be relative to it.
    overrule : bool, default=False
        Whether files count more than what was decided before.
    report : ImportReport, optional
        To be continued.
    group : int, optional
        The run of changes of which this one is a part.
    """
    report = ImportReport() if report is None else report
    items = {item.id: item for item in collection.items()}
    answers = _answers(files, items, beside, report)
    decided = []
    for (number, tag), (is_yes, file) in answers.items():
        before = items[number].tags.get(tag)
        if before is not None and before.is_yes is is_yes:
            report.known += 1
        elif before is not None and not overrule:
            report.kept.append(Kept(number, file, tag, before.is_yes))
        else:
            report.overruled += before is not None
            decided.append((number, tag, is_yes))
    report.given = sum(is_yes for *_, is_yes in decided)
    report.rejected = len(decided) - report.given
    if decided:
        collection.decide(decided, by="person", group=group)
    return report


def _answers(
    files: Iterable[TaggedFile],
    items: Mapping[int, Item],
    beside: str | os.PathLike[str] | None,
    report: ImportReport,
) -> dict[tuple[int, str], tuple[bool, str]]:
    """What files say of items and tags, and which file says so."""
    names: ItemNames | None = None
    answers: dict[tuple[int, str], tuple[bool, str]] = {}
    for one in files:
        if not one.yes and not one.no:
            continue
        report.files += 1
        number = one.id
        if number is None:
            names = ItemNames(items.values(), beside) if names is None else names
            found = names.find(one)
            if isinstance(found, str):
                report.unmatched.append((one.file or (one.content or b"").hex(), found))
                continue
            number = found
        for tag, is_yes in (*((tag, True) for tag in one.yes), *((tag, False) for tag in one.no)):
            try:
                key = (number, tag_name(tag))
            except ValueError as error:
                report.problems.append(f"{one.file}: {str(error).removeprefix('tags: ')}")
                continue
            if (first := answers.setdefault(key, (is_yes, one.file))[0]) is not is_yes:
                what = "yes" if first else "no"
                report.problems.append(
                    f"{one.file}: {shown(tag)} is both given and refused; taken as a {what}"
                )
    return answers


class ItemNames:
    """Items by all that a file may call them."""

    def __init__(self, items: Iterable[Item], beside: str | os.PathLike[str] | None = None) -> None:
        self._beside = None if beside is None else Path(beside).absolute()
        self._contents: dict[bytes, int] = {}
        # Paths as they are, names and paths of before, last parts of paths, and their stems.
        self._now: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        for item in items:
            self._contents[item.content] = item.id
            self._note(self._before, item.name, item.id)
            names = [file.path for file in item.files] or [item.name]
            for name in {name.rpartition("/")[2] for name in names}:
                self._note(self._last, name, item.id)
                self._note(self._stems, Path(name).stem, item.id)
            for file in item.files:
                self._note(self._stems, file.path.removesuffix(Path(file.path).suffix), item.id)
                known = self._before if file.is_missing else self._now
                self._note(known, file.path, item.id)
                self._note(known, os.path.join(file.root, file.path), item.id)  # noqa: PTH118

    def _note(self, known: dict[str, int], name: str, item: int) -> None:
        if known.setdefault(_composed(name), item) != item:
            known[_composed(name)] = _AMBIGUOUS

    def find(self, one: TaggedFile) -> int | str:
        """The item of a file, or why there is none."""
        if one.content is not None and one.content in self._contents:
            return self._contents[one.content]
        names = [*dict.fromkeys(self._candidates(one.file))]
        for known in (self._now, self._before, self._last, self._stems):
            for name in names:
                if (found := known.get(name)) is not None:
                    return "several items found" if found == _AMBIGUOUS else found
        return "no item found"

    def _candidates(self, name: str) -> Iterator[str]:
        """What a name may mean, the likeliest first."""
        for form in dict.fromkeys((name, name.strip(), name.strip().replace("\\", "/"))):
            yield _composed(form)
            if form:
                yield _composed(os.path.normpath(form))
                if self._beside is not None:
                    yield _composed(os.path.normpath(self._beside / form))


def _composed(name: str) -> str:
    """A name as most systems write it: macOS writes ü as u and two dots."""
    return unicodedata.normalize("NFC", plain_text(name))
