"""The clients of benchmarks/service.py: their requests, checks of half changes, and times."""

import asyncio
import gzip
import importlib
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAIR = 7


@pytest.fixture(scope="module")
def clients():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("service_clients")


@pytest.fixture(scope="module")
def plan(clients, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "vectors.npy"
    np.save(path, np.random.default_rng(0).random((3, 4)))
    return clients.Plan(1, 1, 1, 100, [PAIR], str(path), 5)


@pytest.fixture(scope="module")
def requests(clients, plan):
    return clients.Requests(plan)


def body_of(asked):
    return json.loads(asked.sent.partition(b"\r\n\r\n")[2])


def test_a_tenth_of_the_requests_brings_new_vectors(clients, requests):
    times, asked = zip(*requests.of_a_second(), strict=True)
    assert Counter(one.kind for one in asked) == clients.MIX
    assert clients.MIX["POST /api/tag, a vector"] * 10 == clients.READERS == len(asked) == 50
    assert 0 <= min(times) <= max(times) < 1
    assert list(times) == sorted(times)


def test_each_added_tag_is_removed_by_the_next_change(clients, requests):
    changes = requests.changes()
    give, clear, give_again, undo, add = (next(changes) for _ in range(5))
    both = {"ids": [PAIR, PAIR + 1], "tags": [*clients.PAIR_TAGS]}
    assert body_of(give) == body_of(give_again) == both
    assert body_of(clear) == {"ids": [PAIR, PAIR + 1], "clear": [*clients.PAIR_TAGS]}
    assert b"POST /api/undo " in undo.sent
    assert (len(body_of(add)["vector"]), add.status) == (4, 201)


@pytest.mark.parametrize(
    ("own", "others", "is_whole"),
    [
        ((True, True), (True, True), True),
        ((False, False), (False, False), True),
        ((True, False), (True, False), False),
        ((True, True), (False, False), False),
        ((True, True), (True, False), False),
        ((False, False), (True, True), False),
    ],
)
def test_half_of_a_change_is_detected(clients, own, others, is_whole):
    tags, voted = (
        [tag for tag, has in zip(clients.PAIR_TAGS, which, strict=True) if has]
        for which in (own, others)
    )
    items = [{"id": PAIR, "tags": tags}, {"id": PAIR + 1, "tags": voted}, {"id": 9, "tags": []}]
    assert clients.is_whole_page({"items": items}) == is_whole

    near = [{"id": 3}, {"id": PAIR + 1}]
    suggested = [{"tag": tag, "voters": near} for tag in voted]
    suggested += [{"tag": tag, "voters": near[:1]} for tag in clients.PAIR_TAGS if tag not in voted]
    answer = {"id": PAIR, "tags": tags, "suggestions": suggested}
    assert clients.is_whole_answer(answer, PAIR + 1) == is_whole

    groups = [{"tag": one["tag"], "items": one["voters"]} for one in suggested]
    assert clients.are_whole_groups({"tags": tags, "groups": groups}, PAIR + 1) == is_whole


@pytest.mark.parametrize(
    ("counts", "is_whole"), [((1, 1), 1), ((3, 3), 1), ((3, 1), 0), ((2, 2), 0)]
)
def test_half_of_a_change_is_counted(clients, counts, is_whole):
    named = [{"name": tag, "yes": n} for tag, n in zip(clients.PAIR_TAGS, counts, strict=True)]
    assert clients.are_whole_counts({"tags": named}) == bool(is_whole)


def test_a_client_waits_for_no_answer_and_counts_from_when_a_request_was_due(clients):
    """The first of three requests is answered last, and one answer is an error."""
    tally, order = clients.Tally(), []

    async def serve(reader, writer):
        number = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        await asyncio.sleep(0.3 if number == 0 else 0)
        order.append(number)
        status, body = b"500 no" if number == 2 else b"200 OK", gzip.compress(b'{"n": %d}' % number)
        head = b"HTTP/1.1 %b\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def ask():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        connections = clients.Connections(server.sockets[0].getsockname()[1])
        due = time.perf_counter() - 0.1
        asked = [
            clients.Asked(f"kind {n}", b"GET %d HTTP/1.1\r\n\r\n" % n, lambda got: got["n"] < 2)
            for n in range(3)
        ]
        await asyncio.gather(*(clients.ask(one, due, connections, tally) for one in asked))
        connections.close()
        server.close()
        await asyncio.sleep(0.01)  # time for closing them

    asyncio.run(ask())
    assert order[-1] == 0
    assert tally.ms["kind 0"][0] >= 400
    assert tally.ms["kind 1"][0] >= 100
    assert min(tally.late_ms) >= 100
    assert tally.errors == {"kind 2": 1}
    assert "500" in tally.said[0]
