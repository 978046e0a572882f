"""Imported tags become decisions of a collection, in one change that can be undone.

Decisions in the collection take precedence over files: a rejected tag is not given again, and a
given tag is not removed, unless the import is told to overrule them.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.tag_names import tag_name
from nearlabel.common.messages import encodable, shown

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.records import Item

_AMBIGUOUS = -1


class KeptDecision(NamedTuple):
    """A decision of the collection that a file contradicts and that was kept."""

    id: int
    file: str
    tag: str
    is_yes: bool  # what the collection says


@dataclass
class ImportReport:
    """The result of an import.

    Attributes
    ----------
    files : int
        Files with given or rejected tags.
    given, rejected : int
        New decisions: tags given to items, and tags rejected for them.
    known : int
        Decisions that the collection already had.
    kept : list of KeptDecision
        Decisions that files contradict and that were kept.
    overruled : int
        Decisions that files contradict and that were changed.
    unmatched : list of (file, reason)
        Files that match no item, or several.
    problems : list of str
        What could not be read, with the reason.
    """

    files: int = 0
    given: int = 0
    rejected: int = 0
    known: int = 0
    overruled: int = 0
    kept: list[KeptDecision] = field(default_factory=list)
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
    """Import the tags of files into a collection, in one change.

    Parameters
    ----------
    collection : Collection
    files : iterable of TaggedFile
    beside : path, optional
        The folder of the table that names the files; names may be relative to it.
    overrule : bool, default=False
        Whether files take precedence over existing decisions.
    report : ImportReport, optional
        A report to continue.
    group : int, optional
        The run of changes to which this one belongs.
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
            report.kept.append(KeptDecision(number, file, tag, before.is_yes))
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
    """The decisions in files by item and tag, with the file they come from."""
    names: ItemNames | None = None
    answers: dict[tuple[int, str], tuple[bool, str]] = {}
    for tagged in files:
        if not tagged.yes and not tagged.no:
            continue
        report.files += 1
        number = tagged.id
        if number is None:
            names = ItemNames(items.values(), beside) if names is None else names
            match = names.find(tagged)
            if isinstance(match, str):
                report.unmatched.append((tagged.file or (tagged.content or b"").hex(), match))
                continue
            number = match
        for tag, is_yes in (
            *((tag, True) for tag in tagged.yes),
            *((tag, False) for tag in tagged.no),
        ):
            try:
                key = (number, tag_name(tag))
            except ValueError as error:
                report.problems.append(f"{tagged.file}: {str(error).removeprefix('tags: ')}")
                continue
            if (first := answers.setdefault(key, (is_yes, tagged.file))[0]) is not is_yes:
                what = "yes" if first else "no"
                report.problems.append(
                    f"{tagged.file}: {shown(tag)} is both given and rejected; taken as a {what}"
                )
    return answers


class ItemNames:
    """Items by every name that a file may use for them."""

    def __init__(self, items: Iterable[Item], beside: str | os.PathLike[str] | None = None) -> None:
        self._beside = None if beside is None else Path(beside).absolute()
        self._contents: dict[bytes, int] = {}
        # By precedence: paths, names and former paths, last parts of paths, and these without
        # suffixes.
        self._names: tuple[dict[str, int], ...] = ({}, {}, {}, {})
        for item in items:
            self._contents[item.content] = item.id
            for known, names in zip(self._names, _names_of(item), strict=True):
                for name in map(_composed, names):
                    if known.setdefault(name, item.id) != item.id:
                        known[name] = _AMBIGUOUS

    def find(self, tagged: TaggedFile) -> int | str:
        """The item of a file, or the reason why there is none."""
        if tagged.content is not None and tagged.content in self._contents:
            return self._contents[tagged.content]
        names = [*dict.fromkeys(self._candidates(tagged.file))]
        for known in self._names:
            for name in names:
                if (match := known.get(name)) is not None:
                    return "several items found" if match == _AMBIGUOUS else match
        return "no item found"

    def _candidates(self, name: str) -> Iterator[str]:
        """The possible meanings of a name, the likeliest first."""
        for form in dict.fromkeys((name, name.strip(), name.strip().replace("\\", "/"))):
            yield _composed(form)
            if form:
                yield _composed(os.path.normpath(form))
                if self._beside is not None:
                    yield _composed(os.path.normpath(self._beside / form))


def _names_of(item: Item) -> tuple[list[str], ...]:
    """The names of an item, in four groups of falling precedence."""
    now: list[str] = []
    before = [item.name]
    for file in item.files:
        whole = os.path.join(file.root, file.path)  # noqa: PTH118
        (before if file.is_missing else now).extend((file.path, whole))
    paths = [file.path for file in item.files] or [item.name]
    last = [path.rpartition("/")[2] for path in paths]
    return now, before, last, [os.path.splitext(name)[0] for name in (*paths, *last)]  # noqa: PTH122


def _composed(name: str) -> str:
    """A name in composed form (NFC): macOS decomposes ü into two characters."""
    return unicodedata.normalize("NFC", encodable(name))
