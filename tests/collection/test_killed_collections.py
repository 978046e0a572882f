"""Collections of killed processes: all acknowledged changes are there, and no other trace."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from collection_lives import (
    Told,
    answers,
    changes_of,
    content_of,
    fresh_answers,
    orphans,
    put_files,
    step_of,
    walk,
)
from forking import ends_well_in_a_fork

from nearlabel.collection import Collection

pytest.importorskip("PIL.Image")

WRITER = """
import os, sys
from pathlib import Path
from collection_lives import Collection, Told, changes_of, step_of, walk

def say(word, number):
    os.write(1, f"{word} {number}\\n".encode())  # at once, or two processes would mix their words

class Speaking(Told):
    def tell(self, changes):
        say("done", changes)

def live(top, step):
    collection = Speaking(top / "c")
    say("ready", changes_of(collection))
    while True:
        say("step", step)
        walk(collection, step, top / "photos", top / "backup")
        step += 1

# What they need is imported once.
warm = Path(sys.argv[1])
(warm / "photos").mkdir()
with Collection.create(warm / "c", features="moments") as collection:
    for step in range(12):
        walk(collection, step, warm / "photos", warm / "backup")
    for name in ("ask", "save_index", "thumbnail", "backup", "forget"):
        step = next(n for n in range(12, 1000) if step_of(n) == name)
        walk(collection, step, warm / "photos", warm / "backup")
say("warm", 0)
for line in sys.stdin:  # each time another process, without the time to start one
    process = os.fork()
    if not process:
        try:
            live(Path(line.split()[0]), int(line.split()[1]))
        finally:
            os._exit(1)
    say("process", process)
    os.waitpid(process, 0)
    say("killed", process)
"""


class EnoughError(Exception):
    """The collection without kills has caught up with the other one."""


class Stopping(Told):
    """A collection that stops after a number of changes."""

    target = 0

    def tell(self, changes):
        if changes >= self.target:
            raise EnoughError


def killed(server, top, step, changes, seconds):
    """The last change that was acknowledged before a kill, and the step in which it came."""
    print(top, step, file=server.stdin, flush=True)
    said = {}
    wanted = {"process"} if changes is None else {"process", "ready", "step"}
    while not said.keys() >= wanted or (
        changes is not None and int(said.get("done", said["ready"])) < int(said["ready"]) + changes
    ):
        said.update([server.stdout.readline().split()])
        assert "killed" not in said  # it failed without a kill
    time.sleep(seconds)
    os.kill(int(said["process"]), signal.SIGKILL)
    while "killed" not in said:
        said.update([server.stdout.readline().split()])
    return said


class Lives:
    """A collection with killed processes, and the same one without kills."""

    def __init__(self, folder):
        self.killed, self.whole = folder / "killed", folder / "whole"
        for top in (self.killed, self.whole):
            (top / "photos").mkdir(parents=True)
            Collection.create(top / "c", features="moments").close()
        self.reference = Stopping(self.whole / "c")
        self.step = self.changes = 0

    def follow(self, last, changes):
        """Let the collection without kills catch up."""
        self.reference.target = changes
        try:
            for number in range(self.step, last + 1):
                if number < last or changes_of(self.reference) < changes:
                    walk(self.reference, number, self.whole / "photos", self.whole / "backup")
        except EnoughError:
            pass
        if (
            last >= 0 and step_of(last) == "index"
        ):  # all files exist, though perhaps not all are in the collection
            for top in (self.killed, self.whole):
                put_files(top / "photos", last)
        self.step, self.changes = last + 1, changes

    def check(self):
        """Compare them."""
        folder = self.killed / "c"
        with Collection(folder) as collection:
            assert orphans(folder) == []
            assert collection.verify()
            query = np.linspace(-1, 1, collection.settings.width or 1)
            if collection.settings.width:
                assert answers(collection, query) == fresh_answers(collection, query)
            ids = collection.ids()
            if ids:
                mine, its = collection.vectors(ids), self.reference.vectors(ids)
                np.testing.assert_array_equal(mine, its)
        assert content_of(folder) == content_of(self.whole / "c")
        if (self.killed / "backup").exists():
            with Collection(self.killed / "backup") as backup:
                assert backup.verify()
                assert orphans(backup.path) == []


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_acknowledged_changes_survive_a_kill(tmp_path, kills):
    lives, chance = Lives(tmp_path), random.Random(kills)
    (tmp_path / "warm").mkdir()
    command = [sys.executable, "-c", WRITER, str(tmp_path / "warm")]
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    pipe, its = subprocess.PIPE, os.environ | {"PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=its) as server:
        assert server.stdout.readline() == "warm 0\n"
        for _ in range(kills):
            changes = chance.choice([None, *range(12)])
            seconds = chance.choice([0, chance.uniform(0, 0.02)])
            said = killed(server, lives.killed, lives.step, changes, seconds)
            with Collection(lives.killed / "c") as collection:
                now = changes_of(collection)
            assert int(said.get("ready", now)) in (lives.changes, now)
            assert int(said.get("done", lives.changes)) <= now
            assert (
                now <= int(said.get("done", lives.changes)) + 1
            )  # unacknowledged changes may be there
            lives.follow(int(said.get("step", lives.step - 1)), now)
            lives.check()
    assert lives.changes > 3 * kills
    lives.reference.close()


@pytest.mark.skipif(os.name == "nt", reason="needs fork")
def test_a_thumbnail_that_was_not_finished(tmp_path):
    top = tmp_path / "photos"
    with Collection.create(tmp_path / "c", features="moments") as collection:
        walk(collection, 0, top, tmp_path / "backup")

    def die_in_between():
        Path.replace = lambda *_: os._exit(0)
        Collection(tmp_path / "c").thumbnail(1)
        raise AssertionError

    assert ends_well_in_a_fork(die_in_between)
    with Collection(tmp_path / "c"):
        assert orphans(tmp_path / "c") == []
