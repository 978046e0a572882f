"""Power failures: what was confirmed is there, and nothing that was not confirmed is half there."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from power.promises import Promises, checked_content
from power.recorded_disk import Disk, Loss, read_entries

HERE = Path(__file__).parent
RUNS = ("tagging", "indexing", "erasing", "changing_a_model", "serving")
ANYWHERE, BEFORE_SYNC = 0, -1  # where processes are killed
# Of the names, and of the data, what part has reached the disk; in between, it is left to chance.
LOSSES = [(n, d, u) for n in (0, 0.5, 1) for d in (0, 0.5, 1) for u in (512, 4096)]


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A process that forks others, in which calls are recorded or fail."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "recorder.c"]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": paths}
    command, pipe = [sys.executable, "-m", "power.runs"], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield process


@pytest.fixture
def folder(tmp_path):
    """A folder, in memory where that is possible: the disk needs most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as path:
        yield Path(path)


def run(runs: subprocess.Popen[str], folder: Path, *words: str | int) -> None:
    """Let a run happen in a folder."""
    for name in ("top", "outside"):
        (folder / name).mkdir()
    print(json.dumps([str(folder), *words]), file=runs.stdin, flush=True)
    assert runs.stdout.readline() == "0\n", (folder / "errors").read_text()


def check_states(folder: Path, count: int) -> None:
    """Check different disks after power failures at random moments, most of them at promises."""
    top, entries = folder / "top", list(read_entries(folder / "log"))
    chance, contents = random.Random(count), {}
    names = {entry.names[0] for entry in entries if entry.kind == "P"}
    often = count / len(entries) / 3
    while len(contents) < count:
        disk, promises = Disk(str(top)), Promises()
        for entry in entries:
            if entry.kind in "PKO":
                promises.follow(entry)
            else:
                disk.play(entry)
            losses = [chance.choice(LOSSES)]
            if entry.kind == "O":
                losses += [LOSSES[0]]
            elif chance.random() >= often * (3 if entry.kind == "K" else 1):
                continue
            elif entry.kind == "K":
                losses = LOSSES
            for loss in losses:
                state = disk.after(Loss(chance, *loss))
                number = hash(frozenset(state.items()))
                if number not in contents:
                    put(top, state)
                    contents[number] = {name: checked_content(top / name) for name in names}
                for name, content in contents[number].items():
                    assert content in promises.allowed.get(name, [None]), (name, loss)


def put(top: Path, state: dict[str, bytes | None]) -> None:
    """Make a folder look like this."""
    shutil.rmtree(top)
    top.mkdir()
    for path, content in state.items():
        if content is None:
            (top / path).mkdir()
        else:
            (top / path).write_bytes(content)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("count", [80, pytest.param(2200, marks=pytest.mark.slow)])
def test_what_was_confirmed_survives_a_power_failure(runs, folder, name, count):
    run(runs, folder, "record", name)
    check_states(folder, count)


@pytest.mark.parametrize("name", [name for name in RUNS if name != "serving"])
@pytest.mark.parametrize(
    ("count", "step", "where"),
    [
        (30, 3, BEFORE_SYNC),
        pytest.param(1200, 1, BEFORE_SYNC, marks=pytest.mark.slow),
        pytest.param(1200, 5, ANYWHERE, marks=pytest.mark.slow),
    ],
)
def test_what_was_seen_after_a_kill_survives_a_power_failure(
    runs, folder, name, count, step, where
):
    """What a killed process has not synced is on the disk before anybody relies on it."""
    run(runs, folder, "kill", name, step, where)
    check_states(folder, count)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_every_call_fails_once(runs, folder, name, step):
    """An error is one sentence, what was refused does not come back, and the next run works."""
    run(runs, folder, "fail", name, step)
