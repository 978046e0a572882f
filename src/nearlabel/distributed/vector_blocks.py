"""Blocks of rows in files, which workers read one or two at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import replacing
from nearlabel.common.validation import all_finite

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Block:
    """Consecutive rows in one ``.npy`` file."""

    path: str
    start: int  # number of its first row among the rows of all blocks
    rows: int

    @property
    def stop(self) -> int:
        """The number of the row after its last row."""
        return self.start + self.rows


@dataclass(frozen=True)
class VectorBlocks:
    """Rows with the same features in several blocks; indexed by row numbers like an array."""

    blocks: tuple[Block, ...]
    width: int
    dtype: np.dtype[np.generic]

    def __len__(self) -> int:
        return self.blocks[-1].stop

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
            mapped = np.load(self.blocks[which].path, mmap_mode="r")
            inside = np.flatnonzero(home == which)
            result[inside] = mapped[numbers[inside] - starts[which]]
        return result

    def of(self, numbers: Sequence[int]) -> VectorBlocks:
        """Some of the blocks; rows keep their numbers."""
        return VectorBlocks(tuple(self.blocks[i] for i in numbers), self.width, self.dtype)

    def read(self) -> Array:
        """Read the rows of all blocks into one array."""
        rows = np.empty((sum(block.rows for block in self.blocks), self.width), self.dtype)
        done = 0
        for block in self.blocks:
            _read_into(block.path, rows[done : done + block.rows])
            done += block.rows
        return rows

    def runs(self, most: int) -> Iterator[tuple[int, Array]]:
        """Yield runs of at most `most` rows, each with the number of its first row."""
        for block in self.blocks:
            mapped = np.load(block.path, mmap_mode="r")
            for start in range(0, block.rows, most):
                yield block.start + start, np.asarray(mapped[start : start + most], self.dtype)


def blocks_in(files: Sequence[Path], name: str) -> VectorBlocks:
    """The rows of ``.npy`` files, in the order given; only their headers are read."""
    blocks, width, types, start = [], None, [], 0
    for path in files:
        rows = mapped_file(path, name)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise ValueError(
                f"{name}: {path} must contain a matrix of numbers; "
                f"got {rows.dtype} of shape {rows.shape}"
            )
        if width not in (None, rows.shape[1]):
            raise ValueError(
                f"{name}: {path} has {rows.shape[1]} columns, but the blocks before it have {width}"
            )
        width = rows.shape[1]
        if len(rows):
            blocks.append(Block(str(path), start, len(rows)))
            types.append(rows.dtype)
            start += len(rows)
    if not blocks or not width:
        raise ValueError(_nothing(name, files, start))
    return VectorBlocks(tuple(blocks), width, np.result_type(*types))


@dataclass(frozen=True)
class ParquetBlocks:
    """Rows of one width in Parquet files, which workers write as ``.npy`` files before use."""

    files: tuple[Path, ...]
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]


def parquet_blocks(files: Sequence[Path], name: str) -> ParquetBlocks:
    """Rows in some Parquet files, in the order given; only their schemas and sizes are read."""
    from nearlabel.datasets.frames import import_polars

    polars = import_polars()
    width, rows = None, 0
    for path in files:
        try:
            frame = polars.scan_parquet(path, glob=False, hive_partitioning=False)
            schema = frame.collect_schema()
            rows += frame.select(polars.len()).collect().item()
        except (polars.exceptions.PolarsError, OSError) as error:
            raise ValueError(f"{name}: {path} is not a Parquet file: {error}") from None
        for column, kind in schema.items():
            if not (kind.is_numeric() or kind == polars.Boolean):
                raise ValueError(
                    f"{name}: {path} must have numeric columns; {column!r} has the type {kind}"
                )
        if width not in (None, len(schema)):
            raise ValueError(
                f"{name}: {path} has {len(schema)} columns, and the blocks before it {width}"
            )
        width = len(schema)
    if not rows or not width:
        raise ValueError(_nothing(name, files, rows))
    return ParquetBlocks(tuple(files), (rows, width))


def _nothing(name: str, files: Sequence[Path], rows: int) -> str:
    """What is missing in blocks that are all empty."""
    if not files:
        return f"{name} is empty"
    return f"{name}: {files[0]} has no {'columns' if rows else 'rows'}"


def found_blocks(folder: Path, name: str) -> VectorBlocks | ParquetBlocks:
    """The rows in a folder of ``.npy`` or of Parquet files; nothing but their headers is read."""
    files, ending = files_in(folder, name)
    if ending == ".npy":
        return blocks_in(files, name)
    if ending == ".parquet":
        return parquet_blocks(files, name)
    raise ValueError(f"{name}: {folder} must contain .npy or .parquet files; got {ending}")


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


def mapped_file(path: Path, name: str) -> Array:
    """A memory-mapped ``.npy`` file; errors begin with `name`, the argument it was given for."""
    try:
        return np.asanyarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such file: {path}") from None
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{name}: {path} is not a .npy file of numbers: {error}") from None


def write_array(path: str | Path, *arrays: Array) -> None:
    """Write arrays to one file, completely or not at all."""
    with replacing(path) as file:
        for array in arrays:
            np.save(file, array, allow_pickle=False)


def read_arrays(path: str | Path, count: int) -> list[Array]:
    """Read the arrays of a file written by `write_array`."""
    with Path(path).open("rb") as file:
        return [np.load(file, allow_pickle=False) for _ in range(count)]


def check_finite(rows: Array, name: str, where: str) -> None:
    """Check that rows are finite; an error names the argument and where its rows are."""
    if rows.dtype.kind == "f" and not all_finite(rows):
        raise ValueError(f"{name} contains NaN or infinity in {where}; impute or remove it")


def check_block(path: str, name: str) -> None:
    """Check that the rows of a file are finite, a few at a time; runs on workers."""
    mapped = mapped_file(Path(path), name)
    step = max(1, 2**24 // max(1, mapped.shape[1] * mapped.itemsize))
    for start in range(0, len(mapped), step):
        check_finite(np.asarray(mapped[start : start + step]), name, path)


def _read_into(path: str, rows: Array) -> None:
    """Read a file into an existing array, without a copy if the types are the same."""
    mapped = np.load(path, mmap_mode="r")  # no page is read yet
    if mapped.shape != rows.shape:
        raise ValueError(
            f"{path} has changed: its shape was {rows.shape} and is now {mapped.shape}"
        )
    if mapped.dtype != rows.dtype or not mapped.flags.c_contiguous:
        rows[:] = mapped
        return
    with Path(path).open("rb") as file:
        file.seek(mapped.offset)
        if file.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:
            raise ValueError(f"{path} is truncated")
