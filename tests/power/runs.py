"""Runs whose calls are recorded or fail, and what they promise: the process of both tests.

A run can be repeated: it opens what it finds, and everything that it adds is new.
"""

from __future__ import annotations

import ctypes
import errno
import http.client
import itertools
import json
import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from collection_lives import picture, put_files
from drawn_pictures import file_of
from power.promises import Promises, checked_content, content_in, content_of, model_content
from power.recorded_disk import Entry, entry_bytes, read_entries
from served_collections import served

import nearlabel as nl
from nearlabel.collection import Collection, NewItem
from nearlabel.collection.database import Database
from nearlabel.collection.exchange.importing import import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.common.files import FileError

TOP = OUTSIDE = LOG = Path()  # the recorded folder, another one, and the record
numbers = itertools.count()  # of whatever must be new
KILLED = 9  # the exit code that the recorder gives
FAILURES = (errno.EIO, errno.ENOSPC)


promises = Promises()  # of this process
copies: list[tuple[Path, str | None]] = []  # what was left when something was refused


def note(kind: str, name: str, digest: str) -> None:
    """Add to the record, if there is one."""
    if "RECORDER_LOG" in os.environ:
        with LOG.open("ab") as log:
            log.write(entry_bytes(kind, name, digest.encode()))
    promises.follow(Entry(kind, [name], 0, 0, digest.encode()))


@contextmanager
def promised(path: Path, digest: str) -> Iterator[None]:
    """What is written inside has this content at the end; after an error, it has not."""
    note("P", path.name, digest)
    try:
        yield
    except BaseException:
        note("V", path.name, digest)
        raise
    note("K", path.name, digest)


# Every change of a collection is promised before its commit, and confirmed when it returns.

_write = Database.write


def promised_write(self: Database, work: Callable[[sqlite3.Connection], Any]) -> Any:
    if self.is_writing or self.folder.parent != TOP:
        return _write(self, work)
    name, digests = self.folder.name, []

    def job(connection: sqlite3.Connection) -> Any:
        result = work(connection)
        if result is not None:
            digests.append(content_in(connection))
            note("P", name, digests[-1])
        return result

    try:
        result = _write(self, job)
    except BaseException:
        for digest in digests:
            note("V", name, digest)
        copies.append((OUTSIDE / f"copy-{next(numbers)}", promises.allowed[name][0]))
        shutil.copytree(self.folder, copies[-1][0])
        raise
    for digest in digests:
        note("K", name, digest)
    return result


# The runs.


@contextmanager
def opened(**options: Any) -> Iterator[Collection]:
    """The collection, created if there is none."""
    path = TOP / "c"
    if not path.exists():
        with Collection.create(OUTSIDE / f"empty-{next(numbers)}", **options) as empty:
            digest = content_of(empty)
        note("P", path.name, digest)
        Collection.create(path, **options).close()
        note("K", path.name, digest)
    with Collection(path) as collection:
        note("O", path.name, content_of(collection))
        yield collection


def new_items(count: int) -> list[NewItem]:
    contents = [next(numbers) for _ in range(count)]
    return [NewItem(bytes(24) + n.to_bytes(8, "big"), [n % 7, 1, n], name=f"{n}") for n in contents]


def tagging() -> None:
    with opened(kind="vectors") as collection:
        ids = collection.add(new_items(6))
        tag = f"tag {next(numbers)}"
        collection.tag(ids[:4], [tag, "sea"])
        collection.reject(ids[3:], [tag, "sky"])
        collection.rename_tag(tag, f"renamed {tag}")
        collection.undo()
        collection.set_tags(ids[0], ["sky"])
        import_files(collection, [TaggedFile("", ("dog",), ("sea",), id=n) for n in ids[:2]])
        collection.merge_tags([tag, "sky"], "sky")
        collection.undo()
        collection.clear(ids[1], "sea")


def indexing() -> None:
    with opened(features="moments") as collection:
        put_files(OUTSIDE / "photos", number := next(numbers))
        larger = np.random.default_rng(number).integers(0, 256, (48, 48, 3), np.uint8)
        (OUTSIDE / "photos" / f"larger {number}.png").write_bytes(file_of(larger, "PNG"))
        plan = plan_index(collection, OUTSIDE / "photos")
        run_index(collection, plan)
        ids = collection.ids()
        collection.tag(ids[:2], f"tag {number}")
        for item in ids[-3:]:
            with suppress(FileNotFoundError):
                collection.thumbnail(item)
        collection.undo()


def erasing() -> None:
    with opened(kind="vectors") as collection:
        ids = collection.add(new_items(20))
        collection.tag(ids[::2], f"tag {next(numbers)}")
        collection.save_index()
        collection.forget(ids[:3])
        if len([*TOP.glob("backup-*")]) < 3:  # all are opened after a power failure
            target = TOP / f"backup-{next(numbers)}"
            with promised(target, content_of(collection)):
                collection.backup(target)
        collection.tag(ids[5], "sky")
        collection.undo()
        collection.compact()


def changing_a_model() -> None:
    path, chance = TOP / "few.model", np.random.default_rng(0)
    X, Y = chance.normal(size=(12, 2)), chance.integers(0, 2, (12, 3))
    if not path.exists():
        model: Any = nl.MLkNN(2).fit(X, Y)
        with promised(path, model_content(model)):
            model.save(path)
    with nl.load(path, journal=True) as model:
        note("O", path.name, model_content(model))
        for name, *given in (
            ("partial_fit", X[:3] + next(numbers), Y[:3]),
            ("relabel", 1, Y[2:3]),
            ("partial_fit", X[:1], Y[3:4]),
            ("save", path),
            ("forget", [*model.items_.ids(model.items_.places)][-1]),
            ("compact",),
            ("partial_fit", X[:200], Y[:200]),
        ):
            expected = nl.load(path)
            if name != "save":
                getattr(expected, name)(*given)
            with promised(path, model_content(expected)):
                getattr(model, name)(*given)
    model = nl.load(path).partial_fit(X[4:6], Y[4:6])
    with promised(path, model_content(model)):
        model.save(path)


class RefusedError(Exception):
    """An answer of the service with a status of 400 or above."""


def serving() -> None:
    """Clients side by side."""
    with opened(features="moments"):
        pass

    def ask(address: str, where: str, body: bytes, kind: str = "application/json") -> Any:
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        try:
            connection.request("POST", f"/api/{where}", body, {"Content-Type": kind})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise RefusedError(response.status, answer["error"]["message"])
        return answer

    def use(address: str) -> None:
        number = next(numbers)
        item = ask(address, "items", picture(number), "image/png")["id"]
        ask(address, f"items/{item}/tags", b'{"tags": ["sea", "sky"]}')
        other = ask(address, "items", picture(number + 10**6), "image/png")["id"]
        decisions = {"ids": [item, other], "tags": [f"tag {number}"], "no": ["dog"]}
        ask(address, "decisions", json.dumps(decisions).encode())

    with served(TOP / "c") as address, ThreadPoolExecutor(3) as clients:
        for done in [clients.submit(use, address) for _ in range(4)]:
            done.result()
        for _ in range(3):
            ask(address, "undo", b"null")


RUNS = {run.__name__: run for run in (tagging, indexing, erasing, changing_a_model, serving)}


def record(run: Callable[[], None]) -> None:
    """Let a run happen twice."""
    run()
    run()


def kill(run: Callable[[], None], step: int, where: int) -> None:
    """Repeat a run in processes, of which each is killed a few calls later than the one before."""
    global numbers
    run()
    for last in itertools.count(1, step):
        start, process = LOG.stat().st_size, os.fork()
        if not process:
            status = 1
            try:
                numbers = itertools.count(1000 * last)
                recorder.recorder_fail(last, where)
                run()
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code == 0:
            break  # it has ended before that call
        assert code == KILLED, code
        for entry in read_entries(LOG, start):
            if entry.kind in "PKOV":
                promises.follow(entry)


def fail(run: Callable[[], None], step: int) -> None:
    """Repeat a run with a call that fails, each time a later one, and check what it left."""
    recorder.recorder_fail(0, 0)
    run()
    calls, problems = recorder.recorder_fail(0, 0), []
    cases = list(itertools.product(range(1, calls + 1, step), FAILURES))
    for number, error in cases:
        for path in (*TOP.iterdir(), *OUTSIDE.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        promises.allowed.clear()
        copies.clear()
        try:
            recorder.recorder_fail(number, error)
            try:
                run()
            except Exception as raised:
                recorder.recorder_fail(0, 0)
                check_error(raised)
            recorder.recorder_fail(0, 0)
            for path, digest in copies if run is not serving else ():  # clients go on
                assert checked_content(path) == digest, "it came back after a kill"
            for name, allowed in promises.allowed.items():
                assert checked_content(TOP / name) in allowed, f"another content of {name}"
            run()
        except Exception:
            problems.append(f"call {number}, {errno.errorcode[error]}: {traceback.format_exc()}")
    assert not problems, "\n".join(problems)


def check_error(error: Exception) -> None:
    """One sentence that names a file."""
    if isinstance(error, RefusedError):
        assert error.args[0] in (500, 507), error
        message = error.args[1]
    elif isinstance(error, FileError):
        message = str(error)
        assert error.path is not None, message
    else:
        assert isinstance(error, OSError), error
        message = error.strerror
        assert str(error.filename).startswith(str(TOP)), error
    assert "\n" not in message, message


def live(folder: str, what: str, name: str, *step: int) -> None:
    """Record a run in a folder, or kill it or let it fail."""
    global TOP, OUTSIDE, LOG
    TOP, OUTSIDE, LOG = (Path(folder) / part for part in ("top", "outside", "log"))
    os.environ["RECORDER_FOLDER"] = str(TOP)
    if what != "fail":
        os.environ["RECORDER_LOG"] = str(LOG)
    Database.write = promised_write  # type: ignore[method-assign]
    {"record": record, "kill": kill, "fail": fail}[what](RUNS[name], *step)


if __name__ == "__main__":  # with a process for each line: all is imported once
    recorder = ctypes.CDLL(os.environ["LD_PRELOAD"])
    for line in sys.stdin:
        folder, *words = json.loads(line)
        process, code = os.fork(), 1
        if not process:
            try:
                os.dup2(os.open(f"{folder}/errors", os.O_WRONLY | os.O_CREAT), 2)
                live(folder, *words)
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
