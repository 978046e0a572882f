"""Reading folders of blocks, and invalid folders."""

from __future__ import annotations

import numpy as np
import pytest

from nearlabel.distributed.vector_blocks import blocks_in, files_in, found_blocks


def test_rows_by_number_and_in_the_order_of_the_numbers_in_names(tmp_path):
    rows = np.arange(44.0).reshape(11, 4)
    for number, row in enumerate(rows):
        np.save(tmp_path / f"part-{number}.npy", row[None])
    blocks = blocks_in(files_in(tmp_path, "X")[0], "X")
    np.testing.assert_array_equal(blocks.read(), rows)  # 10 comes after 9
    np.testing.assert_array_equal(blocks[np.array([7, 0, 7])], rows[[7, 0, 7]])
    np.testing.assert_array_equal(blocks[2:5], rows[2:5])
    np.testing.assert_array_equal(blocks.of([3, 1]).read(), rows[[3, 1]])


def test_names_with_odd_digits_and_equal_numbers(tmp_path):
    for name in ("1.npy", "01.npy", "²3.npy", "x ü\n[].npy"):
        np.save(tmp_path / name, np.ones((1, 2)))
    names = [path.name for path in files_in(tmp_path, "X")[0]]
    assert [name for name in names if "1" in name] == ["01.npy", "1.npy"]  # on every file system
    assert len(names) == 4


def test_blocks_of_several_types_and_orders(tmp_path):
    np.save(tmp_path / "0.npy", np.asfortranarray(np.ones((3, 2), np.float32)))
    np.save(tmp_path / "1.npy", np.zeros((0, 2), np.float32))
    np.save(tmp_path / "2.npy", np.full((1, 2), 0.1))
    blocks = blocks_in(files_in(tmp_path, "X")[0], "X")
    np.testing.assert_array_equal(blocks.read(), [[1, 1], [1, 1], [1, 1], [0.1, 0.1]])
    assert blocks.dtype == np.float64


def test_invalid_folders_of_blocks_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="X: no such folder: .*nowhere"):
        files_in(tmp_path / "nowhere", "X")
    with pytest.raises(ValueError, match="contains no blocks; expected .npy or .parquet files"):
        files_in(tmp_path, "X")
    np.save(tmp_path / "0.npy", np.ones((3, 2)))
    np.save(tmp_path / "1.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match="1.npy has 5 columns, but the blocks before it have 2"):
        blocks_in(files_in(tmp_path, "X")[0], "X")
    with pytest.raises(FileNotFoundError, match="X: no such file: .*2.npy"):
        blocks_in([tmp_path / "2.npy"], "X")
    (tmp_path / "1.npy").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="1.npy is not a .npy file of numbers"):
        blocks_in(files_in(tmp_path, "X")[0], "X")
    np.save(tmp_path / "1.npy", np.array([["a", "b"]]))
    with pytest.raises(
        ValueError, match="1.npy must contain a matrix of numbers; got <U1 of shape"
    ):
        blocks_in(files_in(tmp_path, "X")[0], "X")
    (tmp_path / "1.parquet").touch()
    with pytest.raises(ValueError, match="files of several types, .npy, .parquet; expected"):
        files_in(tmp_path, "X")


def test_folders_of_parquet_files(tmp_path):
    polars = pytest.importorskip("polars")
    for number, rows in enumerate((3, 0, 2)):
        frame = {"a": np.arange(rows) + 0.5, "b": np.arange(rows)}
        polars.DataFrame(frame).write_parquet(tmp_path / f"{number}.parquet")
    assert found_blocks(tmp_path, "X").shape == (5, 2)
    polars.DataFrame({"a": [1.0]}).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(ValueError, match="3.parquet has 1 columns, but the blocks"):
        found_blocks(tmp_path, "X")
    polars.DataFrame({"a": [1.0], "b": ["x"]}).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(ValueError, match="must have numeric columns; 'b' has the type String"):
        found_blocks(tmp_path, "X")
    (tmp_path / "3.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="X: .*3.parquet is not a Parquet file"):
        found_blocks(tmp_path, "X")
