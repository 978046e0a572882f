"""Clients of a service in one process: readers with one request per second each, and a writer.

The loop is open: a request is sent when it is due, even if the previous one has not been answered,
and its time is measured from when it was due.

Usage: python service_clients.py PLAN.json
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MIX = {  # requests of all readers in a second
    "POST /api/tag, an item": 29,
    "POST /api/tag, a vector": 5,
    "GET /api/items, 100 of them": 6,
    "GET /api/tags": 1,
    "POST /api/retrieve, an item": 4,
    "POST /api/similar, an item": 3,
    "GET /api/health": 2,
}
READERS = sum(MIX.values())
CHANGES_A_SECOND = 5
PAIR_TAGS = ("first of a pair", "second of a pair")
LOOKED_AT = (0.1, 0.5, 1.0)  # shares of the time after which the memory of the server is measured
_OF_PAIRS = 1 / 3  # share of the requests for items
_ALL_TAGS = 50  # at least the number of tags
_PATIENCE = 30.0  # seconds
_SAID = 5  # errors that are reported


@dataclass(frozen=True)
class Plan:
    """What the clients do.

    Attributes
    ----------
    port, pid : int
        Port and process id of the server.
    seconds : float
    items : int
        Number of items; their ids begin with 1.
    pairs : list of int
        The first item of each pair of nearest neighbors; the second is the next item.
    vectors : str
        A .npy file of new vectors.
    changes_a_second : float
        Changes of the writer; 0 for no writer.
    """

    port: int
    pid: int
    seconds: float
    items: int
    pairs: list[int]
    vectors: str
    changes_a_second: float = 0.0


class Asked(NamedTuple):
    """A request, and checks of its answer.

    Attributes
    ----------
    kind : str
    sent : bytes
    status : int
    is_right : callable
        Whether an answer belongs to this request.
    is_whole : callable, optional
        Whether an answer shows whole changes only.
    """

    kind: str
    sent: bytes
    is_right: Callable[[Any], bool]
    is_whole: Callable[[Any], bool] | None = None
    status: int = 200


@dataclass
class Tally:
    """The results of the requests."""

    ms: dict[str, list[float]] = field(default_factory=dict)
    late_ms: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    checked: int = 0
    halves: int = 0
    changes: int = 0

    def fail(self, asked: Asked, why: str) -> None:
        """Count a request with a wrong answer or none."""
        self.errors[asked.kind] += 1
        if len(self.said) < _SAID:
            self.said.append(f"{asked.kind}: {why}")

    def take(self, asked: Asked, status: int, body: bytes) -> None:
        """Check an answer."""
        if status != asked.status:
            self.fail(asked, f"{status} {body[:200]!r}")
            return
        answer = json.loads(body)
        if not asked.is_right(answer):
            self.fail(asked, f"an answer to something else: {body[:200]!r}")
        elif asked.is_whole is not None:
            self.checked += 1
            if not asked.is_whole(answer):
                self.halves += 1
                self.said.append(f"{asked.kind}: half of a change: {body[:2000]!r}")


# A change gives both tags to both items of a pair, or removes all four; never a half of it.


def is_whole_item(tags: list[str]) -> bool:
    """Whether an item has both tags or none."""
    return len({tag in tags for tag in PAIR_TAGS}) == 1


def is_whole_page(answer: Any) -> bool:
    """Whether the first two items of a page, a pair, have all four tags or none of them."""
    one, other = answer["items"][:2]
    return len({tag in item["tags"] for tag in PAIR_TAGS for item in (one, other)}) == 1


def is_whole_answer(answer: Any, other: int) -> bool:
    """Whether the suggestions for an item and its tags are from the same state.

    The other item of the pair is its nearest neighbor: it votes for the two tags while it has them.
    """
    voters = {one["tag"]: {voter["id"] for voter in one["voters"]} for one in answer["suggestions"]}
    own = answer["tags"]
    votes = all((tag in own) == (other in voters.get(tag, ())) for tag in PAIR_TAGS)
    return votes and is_whole_item(own)


def are_whole_groups(answer: Any, other: int) -> bool:
    """The same for the nearest items by tag; not all tags have a group."""
    own = answer["tags"]
    groups = {group["tag"]: {item["id"] for item in group["items"]} for group in answer["groups"]}
    agree = all((tag in own) == (other in groups[tag]) for tag in PAIR_TAGS if tag in groups)
    return agree and is_whole_item(own)


def are_whole_counts(answer: Any) -> bool:
    """Whether each of the two tags has its one permanent item, plus pairs."""
    counts = {one["name"]: one["yes"] for one in answer["tags"]}
    first, second = (counts[tag] for tag in PAIR_TAGS)
    return bool(first == second and first % 2)


class Requests:
    """The requests of the readers and the writer."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._dice = plan, random.Random(1)
        vectors = np.load(plan.vectors).round(5)
        self._vectors = [[float(f"{value:.5f}") for value in row] for row in vectors]

    def of_a_second(self) -> list[tuple[float, Asked]]:
        """A request of each reader, in random order, and its time within a second."""
        kinds = [kind for kind, count in MIX.items() for _ in range(count)]
        self._dice.shuffle(kinds)
        times = sorted(self._dice.random() for _ in kinds)
        return [(at, self._of_kind(kind)) for at, kind in zip(times, kinds, strict=True)]

    def changes(self) -> Iterator[Asked]:
        """One change after the other; each that adds tags is followed by one that removes them."""
        number = 0
        while True:
            for taking in ("clear", "undo"):
                pair = self._dice.choice(self._plan.pairs)
                yield self._decided(pair, "tags")
                yield self._decided(pair, "clear") if taking == "clear" else self._undone()
            number += 1
            yield self._added(number)

    def _of_kind(self, kind: str) -> Asked:
        plan, dice = self._plan, self._dice
        method, _, path = kind.partition(",")[0].partition(" ")
        if path == "/api/health":
            return self._asked(kind, path, None, lambda answer: answer["status"] == "ok")
        if path == "/api/tags":
            right = lambda answer: len(answer["tags"]) > len(PAIR_TAGS)  # noqa: E731
            return self._asked(kind, path, None, right, are_whole_counts)
        if "vector" in kind:
            body: Any = {"vector": dice.choice(self._vectors)}
            return self._asked(kind, path, body, lambda answer: len(answer["suggestions"]) == 10)
        is_pair = path != "/api/similar" and dice.random() < _OF_PAIRS
        item = dice.choice(plan.pairs) if is_pair else dice.randint(1, plan.items)
        if method == "GET":
            page = f"{path}?after={item - 1}&limit=100"
            whole = is_whole_page if is_pair else None
            return self._asked(kind, page, None, lambda got: got["items"][0]["id"] == item, whole)
        wholes: dict[str, Callable[[Any], bool]] = {
            "/api/tag": lambda answer: is_whole_answer(answer, item + 1),
            "/api/retrieve": lambda answer: are_whole_groups(answer, item + 1),
        }
        body = {"id": item} | ({"top": _ALL_TAGS} if is_pair and path == "/api/tag" else {})
        found = {"/api/tag": "suggestions", "/api/retrieve": "groups"}.get(path, "items")
        return self._asked(
            kind,
            path,
            body,
            lambda answer: answer["id"] == item and len(answer[found]) > 0,
            wholes[path] if is_pair else None,
        )

    def _decided(self, pair: int, what: str) -> Asked:
        body = {"ids": [pair, pair + 1], what: PAIR_TAGS}

        def is_right(answer: Any) -> bool:
            found = [tag in item["tags"] for item in answer["items"] for tag in PAIR_TAGS]
            return found == [what == "tags"] * 4

        return self._asked("POST /api/decisions, a pair", "/api/decisions", body, is_right)

    def _undone(self) -> Asked:
        kind = "POST /api/undo"
        return self._asked(kind, "/api/undo", None, lambda got: got["undone"]["kind"] == "decide")

    def _added(self, number: int) -> Asked:
        vector = self._vectors[number % len(self._vectors)]
        body = {"name": f"new {number}", "vector": vector, "tags": ["added"]}
        kind, path = "POST /api/items, a vector", "/api/items"
        asked = self._asked(kind, path, body, lambda answer: bool(answer["is_new"]))
        return asked._replace(status=201)

    def _asked(
        self,
        kind: str,
        path: str,
        body: Any,
        is_right: Callable[[Any], bool],
        is_whole: Callable[[Any], bool] | None = None,
    ) -> Asked:
        lines = [
            f"{kind.partition(' ')[0]} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._plan.port}",
            "Accept-Encoding: gzip",
        ]
        content = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        sent = "\r\n".join([*lines, "", ""]).encode() + content
        return Asked(kind, sent, is_right, is_whole)


class Connections:
    """Connections of one client: one is kept open, and others are opened while it is in use."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def answer(self, sent: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer to a request."""
        found, self._idle = self._idle, None
        reader, writer = found or await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(sent)
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            status, *lines = head.split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines if line)
            body = await reader.readexactly(int(headers["content-length"]))
        except BaseException:
            writer.close()
            raise
        if self._idle is None:
            self._idle = reader, writer
        else:
            writer.close()
        if headers.get("content-encoding") == "gzip":
            body = zlib.decompress(body, zlib.MAX_WBITS | 16)
        return int(status.split()[1]), body

    def close(self) -> None:
        """Close the open connection."""
        if self._idle is not None:
            self._idle[1].close()


async def ask(asked: Asked, due: float, connections: Connections, tally: Tally) -> None:
    """Send a request and check its answer."""
    tally.late_ms.append(1e3 * (time.perf_counter() - due))
    try:
        status, body = await asyncio.wait_for(connections.answer(asked.sent), _PATIENCE)
    except (OSError, EOFError, ValueError, KeyError, TimeoutError) as error:
        tally.fail(asked, repr(error))
        return
    tally.ms.setdefault(asked.kind, []).append(1e3 * (time.perf_counter() - due))
    tally.take(asked, status, body)


async def until(due: float) -> None:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def read(requests: Requests, start: float, plan: Plan, tally: Tally) -> None:
    """Let each reader send one request per second, at a random time within the second."""
    readers = [Connections(plan.port) for _ in range(READERS)]
    under_way: set[asyncio.Task[None]] = set()
    for second in range(int(plan.seconds)):
        for reader, (at, asked) in zip(readers, requests.of_a_second(), strict=True):
            due = start + second + at
            await until(due)
            task = asyncio.create_task(ask(asked, due, reader, tally))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    for reader in readers:
        reader.close()


async def write(requests: Requests, start: float, plan: Plan, tally: Tally) -> None:
    """Make one change after the other; each waits for the previous one."""
    connections, changes = Connections(plan.port), requests.changes()
    for number in range(int(plan.seconds * plan.changes_a_second)):
        due = start + number / plan.changes_a_second
        await until(due)
        await ask(next(changes), due, connections, tally)
        tally.changes += 1
    connections.close()


async def watch(start: float, plan: Plan) -> list[float]:
    """The resident memory of the server in MiB, from time to time."""
    found = []
    for part in LOOKED_AT:
        await until(start + part * plan.seconds)
        found.append(resident_mib(plan.pid))
    return found


def resident_mib(pid: int) -> float:
    """The current memory of a process, without pages of files, which the kernel may drop."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


def core_seconds_of(pid: int) -> float:
    """The CPU time of a process."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def core_seconds_of_all() -> float:
    """The CPU time of all processes of the machine."""
    _, user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[:8]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


async def run(plan: Plan) -> dict[str, Any]:
    """Carry out a plan, and return the results."""
    readers, writer, tally = Requests(plan), Requests(plan), Tally()
    start = time.perf_counter()
    before = core_seconds_of(plan.pid), core_seconds_of(os.getpid()), core_seconds_of_all()
    memory, *_ = await asyncio.gather(
        watch(start, plan),
        read(readers, start, plan, tally),
        write(writer, start, plan, tally),
    )
    after = core_seconds_of(plan.pid), core_seconds_of(os.getpid()), core_seconds_of_all()
    server, own, everything = (end - begin for begin, end in zip(before, after, strict=True))
    return {
        "ms": tally.ms,
        "late_ms": tally.late_ms,
        "errors": tally.errors,
        "said": tally.said,
        "checked": tally.checked,
        "half_changes": tally.halves,
        "changes": tally.changes,
        "resident_mib": memory,
        "core_seconds": {
            "server": server,
            "clients": own,
            "others": max(0.0, everything - server - own),  # the three are measured separately
        },
    }


def main() -> None:
    plan = Plan(**json.loads(Path(sys.argv[1]).read_text()))
    with suppress(KeyboardInterrupt):
        print(json.dumps(asyncio.run(run(plan))))


if __name__ == "__main__":
    main()
