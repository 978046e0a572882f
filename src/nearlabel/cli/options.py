"""Options that several verbs share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from nearlabel.cli.output import Steps

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset

_READING = Group("How DATA is read", sort_key=2)
Data = Annotated[str, Parameter(allow_leading_hyphen=True)]
Several = Parameter(consume_multiple=True)
Part = Literal["all", "train", "test"]
Scale = Literal["none", "minmax", "standard"]
Distance = Literal[
    "euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard"
]


def whole_numbers(kind: Any, tokens: Any) -> Any:
    """Read whole numbers, and nothing that would have to be rounded."""
    for token in tokens:
        if not re.fullmatch(r"[+-]?[0-9]+", token.value):
            raise ValueError(f"a whole number expected; got {token.value!r}.")
    numbers = tuple(int(token.value) for token in tokens)
    return numbers[0] if kind is int else numbers


def neighbor_numbers(kind: Any, tokens: Any) -> tuple[int, ...]:  # noqa: ARG001
    """Read whole numbers and ranges of them, such as 5 10 or 1-50."""
    found: list[int] = []
    for token in tokens:
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", token.value)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 1 <= first <= last < first + 10_000:
            raise ValueError(
                f"whole numbers, or a range such as 1-50, expected; got {token.value!r}."
            )
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


Neighbors = Annotated[
    tuple[int, ...], Several, Parameter(converter=neighbor_numbers, show_default=False)
]
Whole = Annotated[int, Parameter(converter=whole_numbers)]
Switch = Annotated[bool, Parameter(show_default=False)]
Json = Annotated[bool, Parameter(name="--json", show_default=False)]
Output = Annotated[str | None, Parameter(alias="-o")]


@Parameter(name="*", group=_READING)
@dataclass(frozen=True)
class Reading:
    """How a file of items is read.

    Parameters
    ----------
    format
        Form of the file; by default as its suffix says.
    id
        Column with the names of the rows; by default id.
    delimiter
        Between two cells of a table; by default as its first line has it.
    encoding
        Of text files.
    """

    format: Literal["npz", "arff", "csv", "tsv", "jsonl", "sparse"] | None = None
    id: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"

    def load(self, source: str, **more: Any) -> Dataset:
        """Read a data set with these options."""
        import nearlabel as nl

        options = {key: getattr(self, key) for key in self.__dataclass_fields__}
        with Steps("reading") as progress:
            return nl.datasets.load(source, progress=progress, **options, **more)


@Parameter(name="*", group=_READING)
@dataclass(frozen=True)
class LabeledReading(Reading):
    """How a file of labelled items is read.

    Parameters
    ----------
    tags
        Column that has all labels of a row; by default tags or labels.
    separator
        Between two tags; by default the first of ; | , that occurs.
    labels
        Columns of 0 and 1 that are labels.
    xml
        Mulan's list of the labels of an ARFF file; by default the one beside it.
    ignore
        Columns to leave out.
    nominal
        Nominal attributes of ARFF as one column a value, or as one number.
    """

    tags: str | None = None
    separator: str | None = None
    labels: Annotated[tuple[str, ...] | None, Several] = None
    xml: str | None = None
    ignore: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = ()
    nominal: Literal["onehot", "code"] = "onehot"


def part_of(data: Dataset, part: Part) -> Dataset:
    """The rows of one part of a data set's own split, or all."""
    if part == "all":
        return data
    rows = data.train if part == "train" else data.test
    if rows is None:
        raise ValueError(f"--part {part}: this data set has no split of its own")
    return data.rows(rows)
