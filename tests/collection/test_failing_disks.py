"""What was confirmed is on the disk, and what was refused does not come back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearlabel.collection import Collection, NewItem, database, write_ahead_log

FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

static int left = -1, many = 0;
static char of[64];

/* After `first` syncs of files whose names end like this, fail `count` times. */
void fail(const char *name, int first, int count) {
    strncpy(of, name, sizeof of - 1);
    left = first;
    many = count;
}

static int fails(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (left < 0 || length < (ssize_t)strlen(of)) return 0;
    path[length] = 0;
    if (strcmp(path + length - strlen(of), of)) return 0;
    if (left > 0) { left--; return 0; }
    if (--many <= 0) left = -1;
    errno = EIO;
    return 1;
}

int fsync(int descriptor) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return fails(descriptor) ? -1 : real(descriptor);
}

int fdatasync(int descriptor) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return fails(descriptor) ? -1 : real(descriptor);
}
"""

SCRIPT = """
import ctypes, shutil, sys
from pathlib import Path
from nearlabel.collection import Collection, NewItem

lib, top = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])

def new(name):
    return [NewItem(name.encode().ljust(32), [len(name), 1, 2], name=name)]

def names(collection):
    return [item.name for item in collection.items()]

def after_a_kill():
    shutil.rmtree(top / "killed", ignore_errors=True)
    shutil.copytree(top / "c", top / "killed")
    with Collection(top / "killed") as copy:
        check = copy.verify()
        assert check, str(check)
        return names(copy)
"""


@pytest.fixture(scope="session")
def failing(tmp_path_factory):
    """A library whose syncs fail when they are told to, loaded before all others."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("failing")
    (folder / "failing.c").write_text(FAILING)
    command = [compiler, "-shared", "-fPIC", "-w", "-o", "failing.so", "failing.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "failing.so"


def run(failing: Path, code: str, top: Path) -> None:
    command = [sys.executable, "-c", SCRIPT + code, str(failing), str(top)]
    environment = os.environ | {"LD_PRELOAD": str(failing)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("has_reader", [False, True])
def test_a_refused_item_does_not_come_back(failing, tmp_path, count, has_reader):
    """Nor does it get the vector of the next one."""
    code = f"""
with Collection.create(top / "c", kind="vectors") as collection:
    collection.add(new("first"))
    collection.tag(1, "sea")
    reader = Collection(top / "c", readonly=True) if {has_reader} else collection
    reader.items()
    for name in ("failed", "another"):
        lib.fail(b"-wal", 0, {count})
        try:
            collection.add(new(name))
        except OSError as error:
            assert str(top) in str(error)
        else:
            raise AssertionError("the sync did not fail")
        lib.fail(b"nothing", 0, 0)
        assert names(collection) == names(reader) == ["first"]
        assert after_a_kill() == ["first"]
    collection.add(new("last"))
    assert names(collection) == names(reader) == after_a_kill() == ["first", "last"]
    assert collection.verify()
    reader.close()
with Collection(top / "c") as collection:
    assert names(collection) == ["first", "last"]
"""
    run(failing, code, tmp_path)


def test_what_a_killed_process_left_is_synced_before_it_is_read(tmp_path, monkeypatch):
    code = f"""
import os
from nearlabel.collection import Collection, NewItem
collection = Collection.create({str(tmp_path / "c")!r}, kind="vectors")
collection.add([NewItem(bytes(32), [1, 2])])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    wal = tmp_path / "c" / "collection.sqlite-wal"
    assert wal.stat().st_size
    done = []
    connect, sync = database.Database._connect, write_ahead_log.sync

    def connecting(*given):
        done.append("connected")
        return connect(*given)

    def syncing(descriptor):
        done.append("synced" if os.path.sameopenfile(descriptor, log.fileno()) else "other")
        sync(descriptor)

    monkeypatch.setattr(database.Database, "_connect", connecting)
    monkeypatch.setattr(write_ahead_log, "sync", syncing)
    with wal.open("rb") as log, Collection(tmp_path / "c") as collection:
        assert done[:2] == ["synced", "connected"]
        assert len(collection.items()) == 1


@pytest.mark.skipif(os.name == "nt", reason="files have no limits")
def test_a_full_disk_of_a_backup(tmp_path):
    with Collection.create(tmp_path / "c", kind="vectors") as collection:
        rows = [NewItem(bytes([n]) * 32, [n] * 500) for n in range(100)]
        collection.add(rows)
    code = f"""
import resource, shutil
from pathlib import Path
from nearlabel.collection import Collection
target = Path({str(tmp_path / "copy")!r})
with Collection({str(tmp_path / "c")!r}, readonly=True) as collection:
    for room in (0, 1000, 5000, 60_000, 200_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, -1))
        try:
            collection.backup(target)
        except OSError as error:
            assert str(target) in str(error), error
        else:
            raise AssertionError(room)
        assert not target.exists()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
