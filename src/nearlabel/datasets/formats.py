"""The table of file formats: a new one is a module with a reader and a writer, and a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nearlabel.datasets.arff import read_arff, write_arff
from nearlabel.datasets.csv_tables import read_csv, write_csv
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.json_lines import read_json_lines, write_json_lines
from nearlabel.datasets.npz import read_npz, write_npz
from nearlabel.datasets.sparse_text import is_sparse_text, read_sparse_text, write_sparse_text

_NAMES = frozenset({"row_names"})
_ROWS = frozenset({"labels", "tags", "separator", "id", "ignore", "encoding"})
_TABLE = _ROWS | {"delimiter"}
_ARFF = frozenset({"labels", "ignore", "nominal", "xml", "encoding"})


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
    suffixes : tuple of str
        How its files end, before ``.gz``.
    read, write : callable
    options : frozenset of str
        The options of `load` that its reader heeds.
    keeps : frozenset of str
        Which of "row_names" and "extra" have a place in it.
    begins : bytes
        First characters that tell it from other formats on standard input.
    is_binary : bool
        Whether it is read from a file of its own only: neither from standard input nor from an
        archive, nor gzipped.
    finds_labels : bool
        Whether a file has only the labels that occur in it, so that two parts of a data set may
        differ in them.
    is_data : callable, optional
        Tells data sets from other files with its suffix.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[DataFile], Dataset]
    write: Callable[[Dataset, Path], None]
    options: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    begins: bytes = b""
    is_binary: bool = False
    finds_labels: bool = False
    is_data: Callable[[DataFile], bool] = lambda _: True


_FORMATS = (
    Format("npz", (".npz",), read_npz, write_npz, keeps=_NAMES | {"extra"}, is_binary=True),
    Format("arff", (".arff",), read_arff, write_arff, _ARFF, begins=b"@%"),
    Format("csv", (".csv",), read_csv, write_csv, _TABLE, _NAMES, finds_labels=True),
    Format(
        "tsv",
        (".tsv",),
        partial(read_csv, delimiter="\t"),
        partial(write_csv, delimiter="\t"),
        _TABLE,
        _NAMES,
        finds_labels=True,
    ),
    Format(
        "jsonl",
        (".jsonl", ".ndjson"),
        read_json_lines,
        write_json_lines,
        _ROWS,
        _NAMES,
        begins=b"{",
        finds_labels=True,
    ),
    Format(
        "sparse",
        (".txt",),
        read_sparse_text,
        write_sparse_text,
        frozenset({"encoding"}),
        is_data=is_sparse_text,
    ),
)
FORMATS = {row.name: row for row in _FORMATS}
SUFFIXES = {suffix: row.name for row in _FORMATS for suffix in row.suffixes}
