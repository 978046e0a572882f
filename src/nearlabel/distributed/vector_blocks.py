"""Blocks of rows in files: what workers read, a block or two at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import replacing
from nearlabel.common.validation import all_finite


@dataclass(frozen=True)
class Block:
    """Some rows in a ``.npy`` file of their own."""

    path: str
    start: int  # the number of its first row among those of all blocks
    rows: int

    @property
    def stop(self) -> int:
        """The number of the row behind its last."""
        return self.start + self.rows


@dataclass(frozen=True)
class VectorBlocks:
    """Rows of one width in blocks; of their numbers it gives rows as an array would."""

    blocks: tuple[Block, ...]
    width: int
    dtype: Any

    def __len__(self) -> int:
        return self.blocks[-1].stop

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self), self.width

    def __getitem__(self, rows: Any) -> Array:
        """Rows by their numbers: a slice, or an array of them."""
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        starts = np.array([block.start for block in self.blocks])
        home = np.searchsorted(starts, numbers, side="right") - 1
        result = np.empty((len(numbers), self.width), self.dtype)
        for which in np.unique(home):
            mapped = np.load(self.blocks[which].path, mmap_mode="r")
            some = np.flatnonzero(home == which)
            result[some] = mapped[numbers[some] - starts[which]]
        return result

    def of(self, numbers: Sequence[int]) -> VectorBlocks:
        """Some of the blocks, which keep the numbers of their rows."""
        return VectorBlocks(tuple(self.blocks[i] for i in numbers), self.width, self.dtype)

    def read(self) -> Array:
        """The rows of all blocks, one below the other, in one piece of memory."""
        rows = np.empty((sum(block.rows for block in self.blocks), self.width), self.dtype)
        done = 0
        for block in self.blocks:
            _read_into(block.path, rows[done : done + block.rows])
            done += block.rows
        return rows

    def runs(self, most: int) -> Iterator[tuple[int, Array]]:
        """Yield the rows in runs of at most `most`, each with the number of its first row."""
        for block in self.blocks:
            mapped = np.load(block.path, mmap_mode="r")
            for start in range(0, block.rows, most):
                yield block.start + start, np.asarray(mapped[start : start + most], self.dtype)


def blocks_in(files: Sequence[Path], name: str) -> VectorBlocks:
    """Rows in some ``.npy`` files, in the order given; only their headers are read."""
    blocks, width, types, start = [], None, [], 0
    for path in files:
        found = mapped_file(path, name)
        if found.ndim != 2 or found.dtype.kind not in "biuf":
            raise ValueError(
                f"{name}: {path} must hold a matrix of numbers; "
                f"got {found.dtype} of shape {found.shape}"
            )
        if width not in (None, found.shape[1]):
            raise ValueError(
                f"{name}: {path} has {found.shape[1]} columns, and the blocks before it {width}"
            )
        width = found.shape[1]
        if len(found):
            blocks.append(Block(str(path), start, len(found)))
            types.append(found.dtype)
            start += len(found)
    if not blocks or not width:
        raise ValueError(f"{name}: there is no row in {files[0]}" if files else f"{name} is empty")
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
                    f"{name}: {path} must hold columns of numbers; {column!r} has the type {kind}"
                )
        if width not in (None, len(schema)):
            raise ValueError(
                f"{name}: {path} has {len(schema)} columns, and the blocks before it {width}"
            )
        width = len(schema)
    if not rows or not width:
        raise ValueError(f"{name}: there is no row in {files[0]}" if files else f"{name} is empty")
    return ParquetBlocks(tuple(files), (rows, width))


def found_blocks(folder: Path, name: str) -> VectorBlocks | ParquetBlocks:
    """The rows in a folder of ``.npy`` or of Parquet files; nothing but their headers is read."""
    files, ending = files_in(folder, name)
    if ending == ".npy":
        return blocks_in(files, name)
    if ending == ".parquet":
        return parquet_blocks(files, name)
    raise ValueError(f"{name}: {folder} must hold .npy or .parquet files; got {ending}")


def files_in(folder: Path, name: str) -> tuple[list[Path], str]:
    """The files of blocks in a folder, by the numbers in their names, and their ending."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {folder}")
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    found = {path.suffix for path in files} & {".npy", ".npz", ".parquet"}
    if len(found) != 1:
        kinds = f"files of several kinds, {', '.join(sorted(found))}" if found else "no blocks"
        raise ValueError(f"{name}: {folder} holds {kinds}; wanted: .npy or .parquet files")
    ending = found.pop()
    return sorted((path for path in files if path.suffix == ending), key=_by_numbers), ending


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """So that block 10 comes after block 9."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def mapped_file(path: Path, name: str) -> Array:
    """A ``.npy`` file as an array on the disk; an error names the argument that it belongs to."""
    try:
        return np.asanyarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no file {path}") from None
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{name}: {path} is not a .npy file of numbers: {error}") from None


def write_array(path: str | Path, *arrays: Array) -> None:
    """Write arrays to one file, as a whole or not at all."""
    with replacing(path) as file:
        for array in arrays:
            np.save(file, array, allow_pickle=False)


def read_arrays(path: str | Path, count: int) -> list[Array]:
    """What `write_array` wrote."""
    with Path(path).open("rb") as file:
        return [np.load(file, allow_pickle=False) for _ in range(count)]


def checked_rows(rows: Array, path: str) -> Array:
    """Rows without gaps, or an error that names their file."""
    if rows.dtype.kind == "f" and not all_finite(rows):
        raise ValueError(f"X holds NaN or infinity, in {path}; impute or remove it")
    return rows


def _read_into(path: str, rows: Array) -> None:
    """Read a file into memory that is there, without a copy where its type is the same."""
    mapped = np.load(path, mmap_mode="r")  # of which no page is touched
    if mapped.shape != rows.shape:
        raise ValueError(f"{path} has changed: its shape was {rows.shape}, and is {mapped.shape}")
    if mapped.dtype != rows.dtype or not mapped.flags.c_contiguous:
        rows[:] = mapped
        return
    with Path(path).open("rb") as file:
        file.seek(mapped.offset)
        if file.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:
            raise ValueError(f"{path} is cut off")
