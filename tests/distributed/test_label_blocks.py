"""Reading labels in blocks, and invalid blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nearlabel.distributed.label_files import read_labels

Y = np.array([[1, 0], [0, 1], [1, 1]])


def write_npz(path, block):
    sparse.save_npz(path.with_suffix(".npz"), sparse.csr_array(block))


def write_npy(path, block):
    np.save(path.with_suffix(".npy"), block)


def write_parquet(path, block):
    polars = pytest.importorskip("polars")
    polars.DataFrame(block, ["a", "b"]).write_parquet(path.with_suffix(".parquet"))


@pytest.mark.parametrize("write", [write_npy, write_npz, write_parquet])
def test_empty_blocks_and_wrong_values(tmp_path, write):
    for number, block in enumerate((Y[:0], Y[:2], Y[:0], Y[2:])):
        write(tmp_path / f"{number}", block)
    np.testing.assert_array_equal(read_labels(tmp_path).matrix.toarray(), Y)
    write(tmp_path / "3", 2 * Y)
    with pytest.raises(ValueError, match=r"y: .*3\.\w+: a 2-d y must contain only 0 and 1"):
        read_labels(tmp_path)
    for number in range(4):
        write(tmp_path / f"{number}", Y[:0])
    with pytest.raises(ValueError, match="y: .* has no rows"):
        read_labels(tmp_path)


def test_damaged_files(tmp_path):
    path = tmp_path / "0.npz"
    write_npz(path, Y)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="0.npz was not written by scipy.sparse.save_npz"):
        read_labels(tmp_path)
    rows = sparse.csr_array(Y)
    named = {"format": np.array(b"csr"), "shape": Y.shape, "indptr": rows.indptr}
    np.savez(path, data=rows.data, indices=rows.indices + 10**6, **named)
    with pytest.raises(ValueError, match="0.npz was not written by scipy.sparse.save_npz"):
        read_labels(tmp_path)
    path.unlink()
    pytest.importorskip("polars")
    (tmp_path / "0.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="y: .*0.parquet is not a Parquet file"):
        read_labels(tmp_path)
