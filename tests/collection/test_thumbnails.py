"""Small pictures of items."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from nearlabel.collection.thumbnails import thumbnail

images = pytest.importorskip("PIL.Image")


def picture(path: Path, width: int = 640, height: int = 480) -> bytes:
    """Write a photo with GPS metadata; return its content hash."""
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, 3), np.uint8)
    exif = images.Exif()
    exif[0x010F] = "Secret camera"
    exif[0x0112] = 6  # turned
    images.fromarray(pixels).save(path, exif=exif)
    return hashlib.sha256(path.read_bytes()).digest()


def size_of(jpeg: bytes) -> tuple[int, int]:
    size: tuple[int, int] = images.open(io.BytesIO(jpeg)).size
    return size


def test_thumbnails_are_made_once_upright_and_without_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    content = picture(path)
    made = thumbnail(tmp_path, content, [tmp_path / "gone.jpg", path])
    assert size_of(made) == (192, 256)
    assert b"Secret" not in made
    path.unlink()
    assert thumbnail(tmp_path, content, [path]) == made
    assert size_of(thumbnail(tmp_path, content, [path], 64)) == (48, 64)
    kept = [one for one in (tmp_path / "thumbnails").rglob("*") if one.is_file()]
    assert [one.name for one in kept] == [f"{content.hex()}.jpg"]


def test_larger_ones_are_made_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    content = picture(path)
    for _ in range(2):
        assert size_of(thumbnail(tmp_path, content, [path], 400)) == (300, 400)
    assert size_of(thumbnail(tmp_path, content, [])) == (192, 256)


def test_a_file_that_has_changed_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    content = picture(path)
    picture(path, 100, 100)
    with pytest.raises(FileNotFoundError, match="no file of this item"):
        thumbnail(tmp_path, content, [path])


def test_a_damaged_thumbnail_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    content = picture(path)
    made = thumbnail(tmp_path, content, [path])
    (kept,) = (tmp_path / "thumbnails").rglob("*.jpg")
    kept.write_bytes(made[:1000])
    assert thumbnail(tmp_path, content, [path]) == made == kept.read_bytes()


def test_readers_keep_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    content = picture(path)
    thumbnail(tmp_path, content, [path], readonly=True)
    assert not (tmp_path / "thumbnails").exists()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    collection, outside = tmp_path / "c", tmp_path / "outside"
    collection.mkdir()
    outside.mkdir()
    content = picture(tmp_path / "a.jpg")
    (collection / "thumbnails").symlink_to(outside)
    assert size_of(thumbnail(collection, content, [tmp_path / "a.jpg"])) == (192, 256)
    assert not any(outside.iterdir())


@pytest.mark.parametrize("size", [0, 5000, 2.5])
def test_sizes(tmp_path: Path, size: float) -> None:
    with pytest.raises((ValueError, TypeError), match="size"):
        thumbnail(tmp_path, b"\0" * 32, [], size)  # type: ignore[arg-type]
