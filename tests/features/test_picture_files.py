import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from drawn_pictures import file_of, files, png, quadrants
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.features import (
    GridMoments,
    UnreadablePicture,
    find_pictures,
    picture_files,
    picture_vectors,
)
from nearlabel.features.picture_files import Skipping, in_parallel
from nearlabel.features.pictures import upright_rgb

pytest.importorskip("PIL.Image")
PNG = file_of(quadrants(8, 8), "PNG")


def write(path, content=PNG):
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)


def names_in(folder):
    return [os.path.relpath(path, folder) for path in find_pictures(folder)]


def test_files_of_a_folder(tmp_path):
    """By suffix or by content, in order, hidden ones left out."""
    wanted = ["a.JPG", "b/c/d.heic", "b/c.png", "b/e", "z/a.tiff", "z.notes"]
    for name in wanted:
        write(tmp_path / name)
    for name in (".hidden.png", "b/.thumbnails/a.png"):
        write(tmp_path / name)
    for name in ("labels.csv", "a.JPG.xmp", "z/notes"):
        write(tmp_path / name, b"sea;sunset")
    assert names_in(tmp_path) == wanted
    assert find_pictures(str(tmp_path / "b" / "e")) == [str(tmp_path / "b" / "e")]
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        find_pictures(tmp_path / "nowhere")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links(tmp_path):
    write(tmp_path / "in" / "a.png")
    write(tmp_path / "out" / "b.png")
    (tmp_path / "in" / "around").symlink_to(tmp_path / "in", target_is_directory=True)
    (tmp_path / "in" / "there").symlink_to(tmp_path / "out", target_is_directory=True)
    (tmp_path / "in" / "there2").symlink_to(tmp_path / "out", target_is_directory=True)
    (tmp_path / "in" / "one.png").symlink_to(tmp_path / "out" / "b.png")
    (tmp_path / "in" / "lost.png").symlink_to(tmp_path / "none")
    (tmp_path / "in" / "lost").symlink_to(tmp_path / "none")
    (tmp_path / "in" / "self.png").symlink_to(tmp_path / "in" / "self.png")
    found = picture_vectors(tmp_path / "in", GridMoments())
    assert found.names == ["a.png", "one.png", "there/b.png"]
    assert [name for name, _ in found.skipped] == ["lost.png", "self.png"]
    assert len(found.X) == 3


def broken_files(folder):
    """Write 300 broken or strange files; return the names of all and of the readable ones."""
    whole = files()
    good, bad = [], []
    strange = [
        os.fsdecode(b"\xff\xfe%d"),
        "line\nend%d",
        "\x1b[31m%d",
        "%d" + "x" * 240,
        " %d ",
        "'\"%d",
    ]
    bombs = [png(90_000, 90_000, 8, 2, []), b"P6 99999 99999 255\n"]
    for number in range(50):
        name = strange[number % len(strange)] % number
        good.append(f"{name}.jpg")
        write(os.path.join(folder, good[-1]), PNG)  # noqa: PTH118  # disguised as JPEG
        kind = [*whole][number % len(whole)]
        contents = {
            f"empty {name}.png"[-250:]: b"",
            f"text{number}.jpg": b"Dear diary" * number + b"!",
            f"cut{number}.{kind}.gif": whole[kind][
                : len(whole[kind]) // (20 if number < 25 else 50)
            ],
            f"zip{number}.heic": b"PK\3\4" + bytes(number),
            f"bomb{number}.webp": bombs[number % 2],
        }
        for bad_name, content in contents.items():
            bad.append(bad_name)
            write(os.path.join(folder, bad_name), content)  # noqa: PTH118
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.jpg")
        bad.append("pipe.jpg")
    return good, bad


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are texts elsewhere")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_300_broken_and_strange_files(n_jobs, tmp_path):
    good, bad = broken_files(tmp_path)
    assert len(good) + len(bad) >= 300
    found = picture_vectors(tmp_path, GridMoments(), n_jobs=n_jobs)
    assert sorted(found.names) == sorted(good)
    assert sorted(name for name, _ in found.skipped) == sorted(bad)
    assert found.X.shape == (len(good), 294)
    reasons = dict(found.skipped)
    assert all(reason.isprintable() and len(reason) < 300 for reason in reasons.values())
    assert reasons["text1.jpg"].startswith("is not a picture of a known format")
    assert "pixels" in reasons["bomb0.webp"]
    assert reasons["pipe.jpg"] == "is not a regular file"
    assert reasons["zip1.heic"] == "is a zip archive; unpack it first"
    known = ("is a damaged", "is empty", "is not a picture")
    assert all(reasons[name].startswith(known) for name in bad if name.startswith("cut"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_files_without_the_right_to_read_them(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b" / "c.png")
    (tmp_path / "a.png").chmod(0)
    (tmp_path / "b").chmod(0)
    found = picture_vectors(tmp_path, GridMoments())
    (tmp_path / "b").chmod(0o700)
    assert [name for name, _ in found.skipped] == ["a.png", "b"]
    assert all("Permission denied" in reason for _, reason in found.skipped)


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    write(tmp_path / "a.png")
    write(tmp_path / "b" / "c.png")
    listed = os.listdir

    def refusing(path):
        if os.path.basename(path) == "b":  # noqa: PTH119
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", refusing)
    found = picture_vectors(tmp_path, GridMoments())
    assert found.names == ["a.png"]
    assert [name for name, _ in found.skipped] == ["b"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits are others elsewhere")
def test_deep_folders(tmp_path):
    """Deeper than the system has names for."""
    before, name = Path.cwd(), "d" * 200
    try:
        os.chdir(tmp_path)
        for _ in range(25):
            Path(name).mkdir()
            os.chdir(name)
        Path("a.png").write_bytes(PNG)
    finally:
        os.chdir(before)
    found = picture_vectors(tmp_path, GridMoments())
    assert found.names == []
    ((path, reason),) = found.skipped  # the first one that cannot be named
    assert path.startswith(f"{name}/{name}")
    assert reason.startswith("cannot be opened: ")
    with pytest.raises(UnreadablePicture, match=f"d cannot be opened: .*{reason[-10:]}$"):
        upright_rgb(find_pictures(tmp_path)[0])


def test_vectors_and_progress(tmp_path):
    for at in range(7):
        write(tmp_path / f"{at}.png", file_of(quadrants(8 + at, 9), "PNG"))
    write(tmp_path / "3.png", b"")
    told = []
    found = picture_vectors(
        tmp_path, GridMoments(), n_jobs=2, progress=lambda *counts: told.append(counts)
    )
    assert found.names == [f"{at}.png" for at in (0, 1, 2, 4, 5, 6)]
    assert found.skipped == [("3.png", "is empty")]
    assert told == [(done, 7) for done in range(1, 8)]
    expected = GridMoments().transform([tmp_path / name for name in found.names])
    np.testing.assert_array_equal(found.X, expected)


def test_a_pipeline_and_a_list():
    from sklearn.preprocessing import FunctionTransformer

    model = nl.make_pipeline(GridMoments(), FunctionTransformer())
    found = picture_vectors([quadrants(), b"", quadrants()], model)
    assert found.names == ["picture 0", "picture 2"]
    assert found.skipped == [("picture 1", "is empty")]
    assert found.X.shape == (2, 294)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_few_pictures_are_in_memory(n_jobs):
    """The order is kept, and only a few are in memory."""
    taken, given, most = 0, 0, 0

    def sources():
        nonlocal taken, most
        for at in range(200):
            taken += 1
            most = max(most, taken - given)
            yield at

    def prepare(at):
        time.sleep(0.002 if at % 7 == 0 else 0)
        return at

    for expected, found in enumerate(in_parallel(sources(), prepare, n_jobs)):
        assert found == expected
        given += 1
    assert given == 200
    assert most <= 4 * n_jobs + 1


def test_threads_end():
    before = threading.active_count()
    here = threading.get_ident()
    results = in_parallel(range(20), lambda _: threading.get_ident(), 2)
    assert next(results) != here
    results.close()
    assert threading.active_count() == before
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(range(-3, 9), lambda at: 1 / at, 2))
    assert threading.active_count() == before


def test_skipping_keeps_other_errors():
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(Skipping([0]), lambda at: 1 / at))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_an_interrupt_ends_it():
    code = """
import sys, time
from nearlabel.features.picture_files import in_parallel
def prepare(at):
    time.sleep(0.05)
    return at
for at in in_parallel(range(10**6), prepare, 2):
    print(at, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0


def test_a_folder_is_listed_while_it_changes(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b.png")
    pictures = find_pictures(tmp_path)
    shutil.rmtree(tmp_path)
    found = picture_vectors(pictures, GridMoments())
    assert len(found.skipped) == 2
    assert all("No such file" in reason for _, reason in found.skipped)


def test_a_pipeline_without_any_picture_to_scale(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    scaled = make_pipeline(GridMoments(), MinMaxScaler())
    scaled.fit(np.zeros((2, 8, 8), np.uint8))
    found = picture_vectors(tmp_path, scaled)
    assert found.X.shape == (0, 294)
    assert [name for name, _ in found.skipped] == ["broken.jpg"]
    assert repr(found) == "PictureVectors(X of shape (0, 294), 1 skipped)"
    with pytest.raises(TypeError, match=r"model\[:-1\].*MLkNN"):
        picture_vectors(tmp_path, nl.MLkNN())


def test_rows_that_do_not_fit_the_names_are_refused():
    class Forgetful(GridMoments):  # like a remote one, which cannot report what it skips
        def transform(self, X):
            return super().transform([*X][:1])

    with pytest.raises(ValueError, match="transformer .* 2 pictures 0 were skipped.* 1 rows"):
        picture_vectors([np.zeros((8, 8)), b"no picture"], Forgetful())


def test_the_number_of_threads_is_limited(monkeypatch):
    asked = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, n):
            asked.append(n)
            super().__init__(n)

    monkeypatch.setattr(picture_files, "ThreadPoolExecutor", Pool)
    GridMoments(n_jobs=10**6).transform([np.zeros((8, 8))])
    assert asked == [64]
