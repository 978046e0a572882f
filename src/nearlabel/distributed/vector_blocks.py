"""Blocks of rows in files, which workers read one or two at a time.

Given blocks are ``.npy`` files. Those that a run writes are files of `write_tree`: a block that is
not as written is refused with the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.common.validation import all_finite

if TYPE_CHECKING:
    import numpy.typing as npt

WRITTEN = ".rows"  # the ending of blocks that a run writes


@dataclass(frozen=True)
class Block:
    """Consecutive rows in one file."""

    path: str
    start: int  # number of its first row among the rows of all blocks
    rows: int

    def mapped(self) -> Array:
        """The rows, mapped into memory."""
        mapped = mapped_rows(Path(self.path), "X")
        if len(mapped) != self.rows:
            raise ValueError(f"{self.path} has changed: it had {self.rows} rows, not {len(mapped)}")
        return mapped


@dataclass(frozen=True)
class VectorBlocks:
    """Rows with the same features in several blocks; indexed by row numbers like an array."""

    blocks: tuple[Block, ...]
    width: int
    dtype: np.dtype[np.generic]

    def __len__(self) -> int:
        return self.blocks[-1].start + self.blocks[-1].rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self), self.width

    def __getitem__(self, rows: slice | npt.ArrayLike) -> Array:
        """Rows by number: a slice or an array of numbers."""
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        starts = np.array([block.start for block in self.blocks])
        home = np.searchsorted(starts, numbers, side="right") - 1
        result = np.empty((len(numbers), self.width), self.dtype)
        for which in np.unique(home):
            inside = np.flatnonzero(home == which)
            result[inside] = self.blocks[which].mapped()[numbers[inside] - starts[which]]
        return result

    def of(self, numbers: Sequence[int]) -> VectorBlocks:
        """Some of the blocks; rows keep their numbers."""
        return VectorBlocks(tuple(self.blocks[i] for i in numbers), self.width, self.dtype)

    def read(self) -> Array:
        """Read the rows of all blocks into one array."""
        rows = np.empty((sum(block.rows for block in self.blocks), self.width), self.dtype)
        done = 0
        for block in self.blocks:
            rows[done : done + block.rows] = block.mapped()[:]
            done += block.rows
        return rows


def blocks_in(files: Sequence[Path], name: str) -> VectorBlocks:
    """The rows of files, in the order given; only their headers are read."""
    blocks, width, types, start = [], None, [], 0
    for path in files:
        header = _parquet_header if path.suffix == ".parquet" else _array_header
        rows, columns, dtype = header(path, name)
        width = same_width(width, columns, path, name)
        if rows:
            blocks.append(Block(str(path), start, rows))
            types.append(dtype)
            start += rows
    if not blocks or not width:
        what = f": {files[0]} has no {'columns' if start else 'rows'}" if files else " is empty"
        raise ValueError(f"{name}{what}")
    return VectorBlocks(tuple(blocks), width, np.result_type(*types))


def _array_header(path: Path, name: str) -> tuple[int, int, np.dtype[np.generic]]:
    """The shape and the type of the rows of a file."""
    rows = mapped_rows(path, name)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: {path} must contain a matrix of numbers; "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    return *rows.shape, rows.dtype


def _parquet_header(path: Path, name: str) -> tuple[int, int, np.dtype[np.generic]]:
    """The shape of a Parquet file, the rows of which workers write as a block before use."""
    from nearlabel.datasets.frames import import_polars

    polars = import_polars()
    try:
        frame = polars.scan_parquet(path, glob=False, hive_partitioning=False)
        schema = frame.collect_schema()
        rows = frame.select(polars.len()).collect().item()
    except (polars.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{name}: {path} is not a Parquet file: {error}") from None
    for column, kind in schema.items():
        if not (kind.is_numeric() or kind == polars.Boolean):
            raise ValueError(
                f"{name}: {path} must have numeric columns; {column!r} has the type {kind}"
            )
    return rows, len(schema), np.dtype(np.float64)


def same_width(width: int | None, own: int, path: Path, name: str) -> int:
    """The number of columns of a block, which must be that of the blocks before it."""
    if width not in (None, own):
        raise ValueError(f"{name}: {path} has {own} columns, but the blocks before it have {width}")
    return own


def found_blocks(folder: Path, name: str) -> VectorBlocks:
    """The rows in a folder of ``.npy`` or of Parquet files; nothing but their headers is read."""
    files, ending = files_in(folder, name)
    if ending == ".npz":
        raise ValueError(f"{name}: {folder} must contain .npy or .parquet files; got {ending}")
    return blocks_in(files, name)


def files_in(folder: Path, name: str) -> tuple[list[Path], str]:
    """The block files in a folder, ordered by the numbers in their names, and their ending."""
    if folder.is_file():
        raise NotADirectoryError(f"{name}: {folder} is a file; expected a folder of blocks")
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: no such folder: {folder}")
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    endings = {path.suffix for path in files} & {".npy", ".npz", ".parquet"}
    if len(endings) != 1:
        kinds = f"files of several types, {', '.join(sorted(endings))}" if endings else "no blocks"
        raise ValueError(f"{name}: {folder} contains {kinds}; expected .npy or .parquet files")
    ending = endings.pop()
    return sorted((path for path in files if path.suffix == ending), key=_by_numbers), ending


def _by_numbers(path: Path) -> tuple[list[tuple[int, str]], str]:
    """A sort key that puts block 10 after block 9, and 1 after 01, in all folders alike."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], path.name


def mapped_rows(path: Path, name: str) -> Array:
    """The array of a block, mapped; errors begin with `name`, the argument it was given for."""
    try:
        if path.suffix == WRITTEN:
            rows: Array = read_stored(path, mmap=True).tree["rows"]
            return rows
        return np.asanyarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such file: {path}") from None
    except FileError:
        raise
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{name}: {path} is not a .npy file of numbers: {error}") from None


def write_block(path: Path, rows: Array) -> Path:
    """Write rows as a block, unless it exists already; returns its path, which ends in WRITTEN."""
    if not path.exists():
        write_tree(path, {"rows": rows})
    return path


def first_wrong_row(block: Block) -> int | None:
    """The first row of a block that is not finite; runs on workers."""
    mapped = block.mapped()
    step = max(1, 2**24 // (mapped.shape[1] * mapped.itemsize))
    for start in range(0, len(mapped), step):
        rows = np.asarray(mapped[start : start + step])
        if not all_finite(rows):
            return block.start + start + int(np.argmin(np.isfinite(rows).all(axis=1)))
    return None
