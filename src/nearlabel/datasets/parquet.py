"""Parquet files, read and written by polars: tables with typed columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Floats
from nearlabel.common.files import replacing
from nearlabel.common.messages import as_word, shown
from nearlabel.common.validation import physical_memory
from nearlabel.datasets.data_files import DataFile, ReadOptions
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.frames import import_polars, is_frame
from nearlabel.datasets.table_columns import ColumnRoles, written_columns
from nearlabel.datasets.table_rows import TableReader
from nearlabel.datasets.text_lines import DataError, Source

if TYPE_CHECKING:
    from polars import Series

_HOW = {"glob": False, "hive_partitioning": False}
# Reads a file with a memory limit, and prints what is wrong with it.
_TRIAL = f"""
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, ValueError, OSError):
    pass
import polars
try:
    polars.read_parquet(sys.argv[1], **{_HOW})
except BaseException as error:
    print(str(error)[:1000])
    raise SystemExit(1)
"""


class _Rows(Source):
    """A file of rows, counted from 1, instead of lines; an error in row 0 is in no row."""

    def error(self, message: str, line: int | None = None) -> DataError:
        """An error in the row that was read last, or in another one."""
        row = self.line if line is None else line
        return DataError(self.name, None, f"row {row}: {message}" if row else message)


def read_parquet(source: DataFile) -> Dataset:
    """Read a table; a column of lists of strings may contain the tags of each row."""
    polars = import_polars()
    _try_to_read(source.path)
    frame = polars.read_parquet(source.path, **_HOW)
    file = _Rows(source.title)
    if not frame.width:
        raise file.error("there are no columns")
    table = TableReader(file, frame.columns, source.options)
    if table.roles.id is not None and frame.dtypes[table.roles.id].is_temporal():
        frame = frame.with_columns(frame.to_series(table.roles.id).cast(polars.String))
    cells = frozenset(table.roles.cells)
    columns = {
        place: _cells(file, frame.to_series(place), source.options, table.roles, place in cells)
        for place in table.roles.needed
    }
    table.add_columns(columns, range(1, len(frame) + 1))
    file.line = 0
    return table.dataset()


def _try_to_read(path: Path) -> None:
    """Read a file in a child process first: some damaged files end the process.

    polars panics on them, or asks for more memory than any machine has.
    """
    path.stat()  # its error names the file
    if not sys.executable:  # embedded Python
        return
    most = physical_memory() or -1
    command = [sys.executable, "-P", "-c", _TRIAL, str(path), str(most)]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        reason = done.stdout.decode("utf-8", "replace").strip() or "it is damaged or too large"
        raise ValueError(f"this is not a Parquet file: {reason}")


def _cells(
    file: _Rows, column: Series, options: ReadOptions, roles: ColumnRoles, is_cell: bool
) -> Floats | list[object]:
    """The cells of a column: an array of numbers, in which NaN is missing, or a list."""
    polars, kind = import_polars(), column.dtype
    is_number = kind.is_numeric() or kind == polars.Boolean
    # A number may be one of the values of a category that a model knows.
    known = options.features is None or column.name in options.features
    if is_cell and is_number and known and column.name not in roles.categories:
        return column.cast(polars.Float64).fill_null(np.nan).to_numpy()
    if is_number:
        cells = column.to_list()
        return [None if cell is None else as_word(cell) for cell in cells] if is_cell else cells
    if kind in (polars.Categorical, polars.Enum):
        return column.cast(polars.String).to_list()
    if kind in (polars.String, polars.Null) or (kind == polars.List and not is_cell):
        return column.to_list()
    raise file.error(
        f"column {shown(column.name)} has type {kind}, neither numbers nor strings; pass it to "
        "ignore= to leave it out"
    )


def write_parquet(data: Dataset, path: Path) -> None:
    """Write a data set as a table, with one column of 0 and 1 for each label."""
    polars = import_polars()
    columns: list[object] = [] if data.row_names is None else [data.row_names.tolist()]
    if data.train is not None:
        columns.append(np.where(data.train, "train", "test").tolist())
    for matrix in (data.X, data.Y):
        if is_frame(matrix):
            columns += matrix.iter_columns()
        elif sparse.issparse(matrix):
            by_column = matrix.tocsc()
            columns += (by_column[:, [at]].toarray().ravel() for at in range(matrix.shape[1]))
        else:
            columns += list(np.ascontiguousarray(matrix.T))
    named = zip(written_columns(data), columns, strict=True)
    frame = polars.DataFrame([polars.Series(name, cells) for name, cells in named])
    frame = frame.with_columns(polars.col(polars.Float32, polars.Float64).fill_nan(None))
    with replacing(path) as file:
        frame.write_parquet(file)
