"""Models with a journal in killed processes: every acknowledged change is there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import nearlabel as nl

FIRST = np.random.default_rng(0).integers(-4, 5, (12, 2)) + 0.5
FIRST_LABELS = np.random.default_rng(1).integers(0, 2, (12, 3))
QUERIES = np.random.default_rng(2).normal(size=(5, 2))
FOLD = 7  # changes after which the file is rewritten

# A plan that writer and test know: change number i is always the same.
PLAN = """
import numpy as np

def rows_of(number):
    chance = np.random.default_rng(number)
    X = chance.integers(-4, 5, (1 + number % 3, 2)) + 0.5
    Y = (chance.random((len(X), 3 + (number > 20))) < 0.4).astype(int)
    return X, Y, [1000 * number + 100 + i for i in range(len(X))]

def change(model, number):
    X, Y, ids = rows_of(number)
    if number % 4 < 2:
        model.partial_fit(X, Y, ids=ids)
    elif number % 4 == 2:
        model.relabel(1000 * (number - 1) + 100, Y[:1])
    else:
        model.forget(1000 * (number - (3 if number % 8 == 3 else 2)) + 100)

def changes_in(history):
    number = added = 0
    while (added, number // 4, (number + 1) // 4) != (
        history.added, history.forgotten, history.relabelled
    ):
        added += 1 + number % 3 if number % 4 < 2 else 0
        number += 1
    return number
"""
WRITER = (
    PLAN
    + """
import os, sys
import nearlabel as nl

def say(word, number):
    os.write(1, f"{word} {number}\\n".encode())  # at once, or two processes would mix their words

def write(path, fold):
    model = nl.load(path, journal=True)
    number = changes_in(model.history_)
    say("ready", number)
    while True:
        change(model, number)
        number += 1
        say("done", number)
        if number % fold == 0:
            model.compact() if number % 2 else model.save(path)

# What they need is imported once.
warm = nl.MLkNN(2).fit(np.eye(5, 2), np.eye(5, 3, dtype=int), ids=range(5))
warm.save(sys.argv[1])
for number in range(4):
    change(warm, number)
nl.load(sys.argv[1], journal=True).forget(1)
for line in sys.stdin:  # each time another process, without the time to start one
    process = os.fork()
    if not process:
        try:
            write(line.split()[0], int(line.split()[1]))
        finally:
            os._exit(1)
    say("process", process)
    os.waitpid(process, 0)
    say("killed", process)
"""
)
plan: dict = {}
exec(PLAN, plan)


class Rows:
    """The rows of a model after a number of changes, in order of arrival."""

    def __init__(self):
        self.X, self.Y = dict(enumerate(FIRST)), dict(enumerate(FIRST_LABELS))
        self.done, self.q = 0, 3

    def partial_fit(self, X, Y, ids):
        self.q = max(self.q, Y.shape[1])
        self.X |= dict(zip(ids, X, strict=True))
        self.Y |= dict(zip(ids, Y, strict=True))

    def relabel(self, one, y):
        self.q = max(self.q, y.shape[1])
        self.Y[one] = y[0]

    def forget(self, one):
        del self.X[one], self.Y[one]

    def after(self, number):
        """The content of a model fitted to them."""
        while self.done < number:
            plan["change"](self, self.done)
            self.done += 1
        Y = [np.pad(y, (0, self.q - len(y))) for y in self.Y.values()]
        return nl.MLkNN(3).fit([*self.X.values()], np.array(Y), ids=[*self.X])


def killed_while_writing(server, path, fold, changes, seconds):
    """The first and the last number of changes that were acknowledged before the kill.

    It comes some time after so many changes.
    """
    print(path, fold, file=server.stdin, flush=True)
    said = {}
    while not said.keys() >= {"process", "ready"} or (
        int(said.get("done", said["ready"])) < int(said["ready"]) + changes
    ):
        said.update([server.stdout.readline().split()])
        assert "killed" not in said  # it failed without a kill
    time.sleep(seconds)
    os.kill(int(said["process"]), signal.SIGKILL)
    while "killed" not in said:
        said.update([server.stdout.readline().split()])
    return int(said["ready"]), int(said.get("done", said["ready"]))


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("kills", "fold"),
    [(8, FOLD), *(pytest.param(200, fold, marks=pytest.mark.slow) for fold in (1, FOLD, 50))],
)
def test_acknowledged_changes_survive_a_kill(tmp_path, kills, fold):
    path = tmp_path / "model"
    nl.MLkNN(3).fit(FIRST, FIRST_LABELS).save(path)
    chance, known, rows = random.Random(kills), 0, Rows()
    pipe, command = subprocess.PIPE, [sys.executable, "-c", WRITER, str(tmp_path / "warm")]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        for _ in range(kills):
            changes, seconds = chance.randrange(5), chance.choice([0, chance.uniform(0, 0.02)])
            first, done = killed_while_writing(server, path, fold, changes, seconds)
            assert first == known
            model = nl.load(path, mmap=chance.random() < 0.5)
            known = plan["changes_in"](model.history_)
            assert done <= known <= done + 1  # unacknowledged changes may be there
            fresh = rows.after(known)
            wanted = fresh.label_scores(QUERIES).toarray()
            np.testing.assert_array_equal(model.label_scores(QUERIES).toarray(), wanted)
            assert [*model.items_.ids(model.items_.places)] == [*rows.X]
        assert model.verify()
    assert known > kills
