"""Full disks, vanishing folders and jumping clocks: nothing is lost, and errors are clear."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from collection_lives import content_of, orphans, walk

from nearlabel.collection import Collection, NewItem, change_log
from nearlabel.collection.records import vector_content

# In each step, files cannot grow beyond some size; afterwards they can again.
FULL = """
import json, random, resource, sys
from pathlib import Path
from collection_lives import Collection, content_of, orphans, walk

top, chance, told = Path(sys.argv[1]), random.Random(int(sys.argv[2])), []
(top / "photos").mkdir()
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
collection = Collection.create(top / "c", features="moments")
for number in range(int(sys.argv[3])):
    size = chance.choice([1_000, 5_000, 20_000, 60_000, 120_000, unlimited])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited))
    try:
        walk(collection, number, top / "photos", top / "backup")
    except OSError as error:
        told.append(str(error))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
    if number % 5 == 0:
        now = content_of(top / "c")
        collection.close()
        collection = Collection(top / "c")
        assert content_of(top / "c") == now
    assert collection.verify()
collection.close()
assert orphans(top / "c") == []
print(json.dumps({"told": told, "items": len(content_of(top / "c")["items"])}))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs limits of the size of files")
@pytest.mark.parametrize("steps", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_full_disk(tmp_path, steps):
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", FULL, str(tmp_path), "0", str(steps)]
    ended = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert len(said["told"]) > steps / 10
    assert said["items"] > steps / 10
    for message in said["told"]:
        assert "\n" not in message
        assert str(tmp_path) in message


def new(number: int) -> NewItem:
    vector = np.random.default_rng(number).normal(size=4)
    return NewItem(vector_content(str(number), vector), vector, name=f"number {number}")


@pytest.mark.skipif(os.name == "nt", reason="Windows removes nothing that is open")
@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "without database"])
def test_a_collection_that_vanishes_while_it_is_open(tmp_path, how, monkeypatch):
    folder = tmp_path / "c"
    with Collection.create(folder, kind="vectors") as collection:
        monkeypatch.chdir(tmp_path)  # what is found by a relative path, too
        collection.add([new(number) for number in range(5)])
        collection.tag([1, 2, 3], "sea")
        collection.suggest(1)
        acknowledged = collection.items()
        if how == "without database":
            (folder / "collection.sqlite").unlink()
        else:
            folder.rename(tmp_path / "elsewhere")
        if how == "removed":
            shutil.rmtree(tmp_path / "elsewhere")
        if how == "replaced":
            Collection.create(folder, kind="vectors").close()
        for change in (
            lambda: collection.tag(4, "lost"),
            lambda: collection.add([new(9)]),
            lambda: collection.forget(1),
            collection.undo,
            collection.compact,
        ):
            with pytest.raises(FileNotFoundError, match="moved or removed.*nothing was changed"):
                change()
        assert collection.items() == acknowledged
    if how in ("moved", "replaced"):
        with Collection(tmp_path / "elsewhere") as collection:
            assert collection.items() == acknowledged
            assert collection.verify()
    if how == "replaced":
        with Collection(folder) as other:
            assert other.items() == []


def test_a_clock_that_jumps(tmp_path, monkeypatch):
    chance = random.Random(0)
    times = [0, -(10**18), 10**18, 10**19, 10**30, 1]
    for name in ("usual", "jumping"):
        if name == "jumping":
            monkeypatch.setattr(change_log.time, "time_ns", lambda: chance.choice(times))
        (tmp_path / name / "photos").mkdir(parents=True)
        with Collection.create(tmp_path / name / "c", features="moments") as collection:
            for number in range(25):
                walk(collection, number, tmp_path / name / "photos", tmp_path / name / "backup")
            for change in collection.changes():
                assert change.at.year in range(1970, 10_000)
            assert collection.verify()
        assert orphans(tmp_path / name / "c") == []
    assert content_of(tmp_path / "usual" / "c") == content_of(tmp_path / "jumping" / "c")
