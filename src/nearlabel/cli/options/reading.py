"""How a file of items is read, and which of its rows are used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from nearlabel.cli.options import Column, Columns, Format, Nominal, Part, as_typed
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

_GROUP = Group("Reading DATA", sort_key=2)


@Parameter(name="*", group=_GROUP)
@dataclass(frozen=True)
class FileReading:
    """How a file of items is read.

    Parameters
    ----------
    format
        Format of the file; by default determined by its suffix.
    id
        Column of row ids; by default the column id.
    delimiter
        Delimiter between the cells of a table; by default detected in its first line.
    encoding
        Encoding of text files; UTF-16 is also recognized by its byte-order mark.
    """

    format: Format | None = None
    id: Column | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"

    def load(self, source: str, part: Part = "all", **further: Any) -> Dataset:
        """Read a data set with these options: all its rows, or one part of its own split."""
        import nearlabel as nl

        with steps("reading") as progress:
            items = nl.datasets.load(source, progress=progress, **vars(self), **further)
        return part_of(items, part)


@Parameter(name="*", group=_GROUP)
@dataclass(frozen=True)
class LabelReading(FileReading):
    """How a file of items with labels is read, whose features are known or not wanted.

    Parameters
    ----------
    tags
        Column with all labels of a row; by default the column tags or labels.
    separator
        Separator between tags; by default the first of ; | , that occurs.
    labels
        Label columns, with 0 and 1, or patterns such as 'tag_*'.
    xml
        Mulan's XML file with the labels of an ARFF file; by default the one next to it.
    ignore
        Columns to ignore, or patterns.
    nominal
        Nominal attributes of ARFF files: onehot (one column per value) or code (one number).
    """

    tags: Column | None = None
    separator: str | None = None
    labels: Columns | None = None
    xml: Annotated[str | None, Parameter(metavar="FILE")] = None
    ignore: Columns = ()
    nominal: Nominal = "onehot"


@Parameter(name="*", group=_GROUP)
@dataclass(frozen=True)
class LabeledReading(LabelReading):
    """How a file of labeled items is read.

    Parameters
    ----------
    text
        Columns of free text, whose words become features, or patterns.
    categories
        Categorical columns, even if they look like numbers, or patterns.
    """

    text: Columns = ()
    categories: Columns = ()


def check_labeled(items: Dataset, source: str) -> Dataset:
    """Refuse items without labels, or fewer than two."""
    if not items.Y.shape[1]:
        raise ValueError(f"{source} has no labels")
    if len(items) < 2:
        rows = counted(len(items), "row")
        raise ValueError(f"{source} has {rows} to learn from; at least 2 are needed")
    return items


def check_unused(options: FileReading, source: str) -> None:
    """Refuse options about columns, which pictures do not have."""
    for word in as_typed(options)[:1]:
        raise ValueError(f"{word}: {source} has pictures, not columns")


def source_name(source: str) -> str:
    """A file as messages name it."""
    return "standard input" if source == "-" else source


def is_table(source: str, format: str | None) -> bool:
    """Whether a file is a table with named columns, without reading it."""
    from nearlabel.datasets.formats import FORMATS
    from nearlabel.datasets.picture_sets import is_picture_set
    from nearlabel.datasets.source_files import find

    if is_picture_set(source):
        return False
    return "tags" in FORMATS[find(source, format).format].options


def dividing_tags(reading: LabelReading, source: str, separator: str | None) -> LabelReading:
    """How a table is read whose tags have this separator, unless the user chooses another."""
    if separator is None or reading.separator or not is_table(source, reading.format):
        return reading
    return replace(reading, separator=separator)


def label_names(items: Dataset, source: str, format: str | None) -> list[str] | None:
    """The names of the labels of a file, which must have some.

    In a table they all have names, even if these are only their numbers.
    """
    from nearlabel.datasets.text_lines import names_or_numbers

    if items.label_names is None and not items.Y.shape[1]:
        raise ValueError(f"{source_name(source)} has no labels")
    if items.label_names is None and not is_table(source, format):
        return None
    return names_or_numbers(items.label_names, items.Y.shape[1])


def part_of(items: Dataset, part: Part) -> Dataset:
    """The rows of one part of a data set's own split, or all."""
    if part == "all":
        return items
    rows = items.train if part == "train" else items.test
    if rows is None:
        raise ValueError(f"--part {part}: this data set has no split of its own")
    return items.rows(rows)


def sizes_of(items: Dataset) -> Tree:
    """The sizes of a data set."""
    return {"items": len(items), "features": items.X.shape[1], "labels": items.Y.shape[1]}


def sizes(setting: Tree) -> str:
    """The sizes of a data set, for people."""
    return ", ".join(counted(setting[f"{what}s"], what) for what in ("item", "feature", "label"))
