"""Records of vectors, in which every change is detected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearlabel.collection.folder_checks import CollectionError
from nearlabel.collection.vector_file import HEAD_SIZE, Form, VectorFile

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = np.array([5, 9, 2, 7])
STRIDE = 16 + 4 * 3


def written(path: Path) -> list[int]:
    file = VectorFile.create(path, Form(3, False))
    places, _ = file.append(IDS.tolist(), ROWS)
    file.close()
    return places


def read(path: Path, ids: list[int], places: list[int]) -> np.ndarray:
    file = VectorFile(path, Form(3, False), HEAD_SIZE + 4 * STRIDE, writable=False)
    try:
        found: np.ndarray = file.read(np.array(ids), np.array(places))
    finally:
        file.close()
    return found


def test_rows_are_read_in_any_order(tmp_path: Path) -> None:
    places = written(tmp_path / "v")
    order = [2, 0, 3]
    found = read(tmp_path / "v", IDS[order].tolist(), [places[i] for i in order])
    assert np.array_equal(found, ROWS[order])
    assert read(tmp_path / "v", [], []).shape == (0, 3)


@pytest.mark.parametrize("byte", range(STRIDE))
def test_no_byte_of_a_record_can_change(tmp_path: Path, byte: int) -> None:
    path = tmp_path / "v"
    places = written(path)
    content = bytearray(path.read_bytes())
    content[places[2] + byte] ^= 16
    path.write_bytes(content)
    assert np.array_equal(read(path, [5, 7], [places[0], places[3]]), ROWS[[0, 3]])
    with pytest.raises(CollectionError, match="item 2"):
        read(path, IDS.tolist(), places)


def test_a_record_belongs_to_its_item(tmp_path: Path) -> None:
    places = written(tmp_path / "v")
    with pytest.raises(CollectionError, match="item 9 belongs to another"):
        read(tmp_path / "v", [5, 9], [places[0], places[2]])
    for wrong in (places[0] + 1, 0, places[-1] + STRIDE):
        with pytest.raises(CollectionError, match="not where it should be"):
            read(tmp_path / "v", [5], [wrong])
