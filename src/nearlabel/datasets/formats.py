"""The table of file formats: a new one is a module with a reader and a writer, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from nearlabel.datasets.arff import read_arff, write_arff
from nearlabel.datasets.csv_tables import read_csv, read_tsv, write_csv, write_tsv
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.json_lines import (
    is_json_array,
    read_json_array,
    read_json_lines,
    write_json_array,
    write_json_lines,
)
from nearlabel.datasets.npz import read_npz, write_npz
from nearlabel.datasets.parquet import read_parquet, write_parquet
from nearlabel.datasets.sparse_text import is_sparse_text, read_sparse_text, write_sparse_text

# Options of `load`, and what is kept by `save`.
_TABLE = {"labels", "tags", "separator", "id", "ignore", "text", "categories", "gaps", "frame"}
_CSV = _TABLE | {"encoding", "delimiter"}
_FRAMES = {"row_names", "frames"}


@dataclass(frozen=True)
class Format:
    """A file format.

    A binary one is read only from a plain file: not from standard input, nor gzipped.
    """

    suffixes: tuple[str, ...]  # before ".gz"
    read: Callable[[DataFile], Dataset]
    write: Callable[[Dataset, Path], None]
    options: Set[str] = frozenset()  # options of `load` that the reader supports
    keeps: Set[str] = frozenset()  # "row_names", "extra", "frames", "gaps": what is saved
    begins: bytes = b""  # first characters that identify it on standard input
    is_binary: bool = False
    in_parts: bool = False  # whether the two parts of a split may be in two files
    is_data: Callable[[DataFile], bool] = lambda _: True  # not another file with this suffix


FORMATS = {
    "npz": Format((".npz",), read_npz, write_npz, keeps={"row_names", "extra"}, is_binary=True),
    "arff": Format(
        (".arff",),
        read_arff,
        write_arff,
        {"encoding", "labels", "ignore", "nominal", "xml"},
        begins=b"@%",
        in_parts=True,
    ),
    "csv": Format((".csv",), read_csv, write_csv, _CSV, _FRAMES | {"gaps"}),
    "tsv": Format((".tsv",), read_tsv, write_tsv, _CSV, _FRAMES | {"gaps"}),
    "jsonl": Format(
        (".jsonl", ".ndjson"),
        read_json_lines,
        write_json_lines,
        _TABLE | {"encoding"},
        _FRAMES,
        begins=b"{",
    ),
    "json": Format(
        (".json",),
        read_json_array,
        write_json_array,
        _TABLE | {"encoding"},
        _FRAMES,
        begins=b"[",
        is_data=is_json_array,
    ),
    "parquet": Format(
        (".parquet",),
        read_parquet,
        write_parquet,
        _TABLE,
        _FRAMES | {"gaps"},
        is_binary=True,
    ),
    "sparse": Format(
        (".txt",),
        read_sparse_text,
        write_sparse_text,
        {"encoding"},
        in_parts=True,
        is_data=is_sparse_text,
    ),
}
SUFFIXES = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes}
