"""One thread writes: changes that belong together, threads side by side, and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from forking import ends_well_in_a_fork

from nearlabel.collection import Collection, CollectionError, NewItem


def new(number):
    return NewItem(bytes([number]) * 32, [number, 1, 2], name=f"number {number}")


@pytest.fixture
def songs(tmp_path):
    with Collection.create(tmp_path / "c", kind="vectors") as collection:
        collection.add([new(number) for number in range(1, 6)])
        yield collection


def test_changes_made_together_are_one_or_none(songs):
    def work():
        (item,) = songs.add([new(9)])
        songs.tag(item, "sea")
        assert songs.item(item).yes == ["sea"]  # what it has changed so far
        with Collection(songs.path, readonly=True) as reader:
            assert reader.tags() == []
        return item

    item = songs.together(work)
    assert songs.item(item).yes == ["sea"]

    def failing():
        songs.tag(1, "sky")
        songs.tag(99, "sky")

    before = songs.items(), songs.changes()
    with pytest.raises(CollectionError, match="no item 99"):
        songs.together(failing)
    assert (songs.items(), songs.changes()) == before
    songs.together(lambda: songs.tag(2, "lost") and None)  # returns None: taken back
    assert (songs.items(), songs.changes()) == before
    assert songs.verify()


@pytest.mark.parametrize("error", ["unknown item", "full disk"])
def test_an_error_that_is_caught_takes_back_all(songs, error, monkeypatch):
    """SQLite itself takes back the whole transaction when a disk is full."""

    def fail():
        if error == "unknown item":
            songs.tag(99, "lost")
        songs._database.write(lambda writer: writer.execute("ROLLBACK") and songs.tag(99, "lost"))

    def work():
        songs.tag(1, "first")
        with suppress(CollectionError):
            fail()
        with suppress(CollectionError):
            songs.tag(2, "last")
        return True

    before = songs.items(), songs.changes()
    with pytest.raises(CollectionError, match="no item 99"):
        songs.together(work)
    assert (songs.items(), songs.changes()) == before
    songs.tag(3, "after")
    assert songs.verify()


def test_a_part_without_effect_leaves_the_others(songs):
    songs.tag(1, "sea")
    before = songs.last_change()

    def work():
        first = songs.tag(1, "sea")
        return [first, songs.tag(2, "sea"), songs.undo(), songs.tag(3, "sea")]

    none, tagged, undone, again = songs.together(work)
    assert none is None
    assert (tagged.number, undone.number) == (before + 1, before + 1)
    assert again.number == before + 3  # of the undo is another
    assert [tag.yes for tag in songs.tags()] == [2]


def test_what_a_part_cannot_be(songs):
    songs.tag([1, 2], "sea")
    for step in (lambda: songs.suggest(1), songs.save_index, lambda: songs.forget(1)):
        with pytest.raises(RuntimeError, match="made together"):
            songs.together(step)
    with pytest.raises(RuntimeError, match="while this thread reads it"), songs.snapshot():
        songs.together(lambda: songs.tag(3, "sea"))
    assert songs.verify()


def test_groups_of_threads_differ(songs):
    with ThreadPoolExecutor(8) as pool:
        groups = [*pool.map(lambda _: songs.new_group(), range(100))]
    assert len({*groups}) == 100


def test_changes_of_many_threads(songs):
    def work(number):
        for step in range(5):
            songs.tag(1 + number % 5, f"{number} {step}")
            songs.suggest(np.ones(3))

    with ThreadPoolExecutor(8) as pool:
        [*pool.map(work, range(16))]
    assert len(songs.tags()) == 80
    assert len({change.number for change in songs.changes(100)}) == 81
    assert songs.verify()
    names = {thread.name for thread in threading.enumerate()}
    assert sum(name.startswith("collection") for name in names) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("has_begun", [False, True])
def test_an_interrupted_change_is_taken_back(songs, has_begun):
    began, ends = threading.Event(), threading.Event()

    def slow():
        began.set()
        ends.wait(10)
        return songs.tag(1, "slow")

    def interrupt():
        began.wait(10)
        time.sleep(0.5)  # the other thread waits by then, on a busy machine, too
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)  # and has been interrupted
        ends.set()

    threads = [threading.Thread(target=interrupt)]
    if not has_begun:
        threads.append(threading.Thread(target=songs.together, args=[slow]))
    for thread in threads:
        thread.start()
    if not has_begun:
        began.wait(10)
    with pytest.raises(KeyboardInterrupt):
        songs.together(slow) if has_begun else songs.tag(2, "waiting")
    for thread in threads:
        thread.join()
    assert [tag.name for tag in songs.tags()] == ([] if has_begun else ["slow"])
    songs.tag(3, "after")
    assert songs.item(3).yes == ["after"]


def test_a_collection_that_is_never_closed(tmp_path):
    code = f"""
import atexit
from nearlabel.collection import Collection, NewItem
collection = Collection.create({str(tmp_path / "c")!r}, kind="vectors")
collection.add([NewItem(bytes(32), [1, 2])])
atexit.register(lambda: collection.tag(1, "at the end"))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    with Collection(tmp_path / "c") as collection:
        assert collection.item(1).yes == ["at the end"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_fork_while_the_thread_writes(songs):
    began, ends = threading.Event(), threading.Event()

    def slow():
        began.set()
        ends.wait(10)
        return songs.tag(1, "slow")

    thread = threading.Thread(target=songs.together, args=[slow])
    thread.start()
    began.wait(10)

    def in_the_child():
        with pytest.raises(CollectionError, match="is closed"):
            songs.tag(2, "child")
        with Collection(songs.path, readonly=True) as reader:
            assert reader.tags() == []

    try:
        assert ends_well_in_a_fork(in_the_child)
    finally:
        ends.set()
        thread.join()
    assert songs.item(1).yes == ["slow"]
