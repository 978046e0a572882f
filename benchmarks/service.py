"""How fast does `nearlabel serve` answer 50 clients, also during changes, and for new pictures?

The server is a separate process on this machine; all clients share another process.

Usage: python service.py [--seconds N] [--items N]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import report
from pictures import drawn
from service_clients import CHANGES_A_SECOND, LOOKED_AT, PAIR_TAGS, READERS, Plan

QUESTION = (
    "`nearlabel serve`: answers in wall-clock milliseconds, server and clients on the same machine"
)
D, TAGS, TAGS_AN_ITEM = 1280, 40, 3.0
BATCH = 5_000  # items of one change
UNDECIDED = 10  # one item in this many
PAIRS = 4  # pairs of nearest neighbors, whose tags change together
CALLS = 200  # of each kind, without a server
SIZES = {"1 megapixel": (1152, 864), "12 megapixels": (4000, 3000)}
FEATURES = ("moments", "efficientnet-lite0")
FOLLOWING = 10  # pictures after the first
SLOWEST_MS, SLOWEST_PICTURE_MS = 250, 500  # of 95 % of the answers, and of an answer for a picture
GROWTH = 1.1  # largest allowed growth of memory
CALLED = {  # the request that makes each call
    "Collection.suggest, an item": "POST /api/tag, an item",
    "Collection.suggest, a vector": "POST /api/tag, a vector",
    "Collection.items, 100 of them": "GET /api/items, 100 of them",
    "Collection.retrieve, an item": "POST /api/retrieve, an item",
    "Collection.similar, an item": "POST /api/similar, an item",
}
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_LONGEST_START = 120  # seconds


class Made(NamedTuple):
    """A collection, the first item of each pair in it, and vectors that are not in it."""

    folder: Path
    pairs: list[int]
    vectors: Path


def made(folder: Path, n: int, d: int = D, **settings: Any) -> Made:
    """Create a collection of n items, and learn from it."""
    import nearlabel as nl
    from nearlabel.collection.records import NewItem, vector_content

    found = nl.datasets.make_collection(n, d, TAGS, labels_per_sample=TAGS_AN_ITEM, n_queries=200)
    X, Y = np.asarray(found.data.X), found.data.Y.tocsr()
    pairs = [1 + at * (n // PAIRS) for at in range(PAIRS)]  # ids; half of them are undecided
    random = np.random.default_rng(0)
    for item in pairs:
        X[item] = X[item - 1] + 1e-3 * random.standard_normal(d)
    undecided = {*range(5, n + 1, UNDECIDED), *(id + i for id in pairs[::2] for i in (0, 1))}
    with nl.collection.Collection.create(folder, **settings) as store:
        for start in range(0, n, BATCH):
            named = [(f"item {i + 1}", X[i]) for i in range(start, min(start + BATCH, n))]
            store.add([NewItem(vector_content(name, x), x, name=name) for name, x in named])
        tags = {i + 1: Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(n)}
        decided = [(id, f"tag {tag}") for id in tags if id not in undecided for tag in tags[id]]
        decided += [(3, tag) for tag in PAIR_TAGS]
        store.decide([(id, tag, True) for id, tag in decided])
        store.save_index()
    vectors = folder.with_suffix(".npy")
    np.save(vectors, found.queries.X)
    return Made(folder, pairs, vectors)


def environment() -> dict[str, str]:
    """The environment of a server as started by a user, without run.py's limit of BLAS threads."""
    return {name: value for name, value in os.environ.items() if name not in _THREADS}


class Server(NamedTuple):
    """A running server, and how long it took to start."""

    port: int
    pid: int
    seconds: float


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """A server process of a collection, from when it is ready until it is stopped."""
    log = folder.with_suffix(".log")
    command = [sys.executable, "-m", "nearlabel", "serve", str(folder), "--port", "0"]
    start = time.perf_counter()
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
        ) as process,
    ):
        try:
            port = _port(process)
            while asked(port, "GET", "/api/health")[1]["status"] != "ok":
                if time.perf_counter() - start > _LONGEST_START:
                    raise TimeoutError
                time.sleep(0.01)
            yield Server(port, process.pid, time.perf_counter() - start)
        except BaseException:
            sys.stderr.write("".join(log.read_text().splitlines(keepends=True)[-20:]))
            raise
        finally:
            process.terminate()
        if process.wait(60):
            raise RuntimeError(f"the server ended with {process.returncode}: {log.read_text()}")


def _port(process: subprocess.Popen[str]) -> int:
    """The port reported by a server."""
    assert process.stdout is not None
    for line in process.stdout:
        said = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if said:
            return int(said[1])
    raise RuntimeError("the server has not started")


def asked(port: int, method: str, path: str, body: bytes | None = None) -> tuple[float, Any]:
    """The seconds of a request with its own connection, and the answer."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": "image/jpeg"} if body else {})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]!r}")
    return time.perf_counter() - start, json.loads(content)


def milliseconds(times: Sequence[float]) -> dict[str, float]:
    """The median and the 95th and 99th percentiles of some times."""
    half, most, nearly_all = np.quantile(times, (0.5, 0.95, 0.99))
    return {
        "half_within_ms": round(float(half), 1),
        "95_percent_within_ms": round(float(most), 1),
        "99_percent_within_ms": round(float(nearly_all), 1),
    }


def under_load(here: Made, n: int, seconds: int, changes: float) -> Any:
    """The results of clients that use a server for some time."""
    with served(here.folder) as server:
        vectors = str(here.vectors)
        plan = Plan(server.port, server.pid, seconds, n, here.pairs, vectors, changes)
        path = here.folder.with_suffix(".json")
        path.write_text(json.dumps(asdict(plan)))
        command = [sys.executable, str(Path(__file__).with_name("service_clients.py")), str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def load_rows(name: str, found: Any, seconds: int, direct: dict[str, float]) -> list[Any]:
    """The reported rows of clients that used a server for some time.

    Each kind of request is compared with its call of the collection, without a server and without
    load, and with a request that does nothing, under the same load.
    """
    nothing = float(np.median(found["ms"]["GET /api/health"]))
    rows: list[dict[str, Any]] = []
    for kind, times in found["ms"].items():
        call = direct.get(kind)
        half = float(np.median(times))
        rows.append(
            {
                "load": name,
                "request": kind,
                "requests": len(times),
                "errors": found["errors"].get(kind, 0),
                **milliseconds(times),
                "times_the_call_alone": None if call is None else round(half / call, 1),
                "times_health": round(half / nothing, 1),
            }
        )
    rows.sort(key=lambda row: -row["requests"])
    memory = {
        f"mib_after_{part:.0%}".replace("%", "_percent"): round(mib)
        for part, mib in zip(LOOKED_AT, found["resident_mib"], strict=True)
    }
    rows.append(
        {
            "load": name,
            "seconds": seconds,
            "requests_a_second": round(sum(map(len, found["ms"].values())) / seconds, 1),
            **{
                f"{who}_core_seconds": round(taken, 1)
                for who, taken in found["core_seconds"].items()
            },
            **memory,
            "99_percent_sent_late_by_ms": milliseconds(found["late_ms"])["99_percent_within_ms"],
        }
    )
    rows.append(
        {
            "load": name,
            "changes": found["changes"],
            "answers_looked_at_for_half_changes": found["checked"],
            "half_changes_seen": found["half_changes"],
        }
    )
    return rows


def called(here: Made, n: int) -> dict[str, list[float]]:
    """Milliseconds of calls in this process, one kind after the other; one thread, as served."""
    from nearlabel.collection import Collection
    from nearlabel.common.threads import one_blas_thread

    random, vectors = np.random.default_rng(2), np.load(here.vectors)
    with Collection(here.folder, readonly=True) as store, one_blas_thread:
        works: dict[str, Callable[[int], Any]] = {
            "Collection.suggest, an item": store.suggest,
            "Collection.suggest, a vector": lambda i: store.suggest(vectors[i % len(vectors)]),
            "Collection.items, 100 of them": lambda i: store.items(after=i - 1, limit=101),
            "Collection.retrieve, an item": store.retrieve,
            "Collection.similar, an item": store.similar,
        }
        found = {}
        for name, work in works.items():
            work(1)  # loads what is needed
            ids = [int(id) for id in random.integers(1, n + 1, CALLS)]
            found[name] = [1e3 * seconds_of(partial(work, id)) for id in ids]
    return found


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alone(here: Made, n: int) -> dict[str, list[float]]:
    """The result of `called` in another process with the environment of servers."""
    command = [sys.executable, __file__, "--call", str(here.folder), "--items", str(n)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment())
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def dropped_pictures(folder: Path, n: int) -> list[dict[str, Any]]:
    """Times of the first and the next answers for pictures that are not in a collection."""
    from nearlabel.collection.item_features import chosen_features, item_features
    from nearlabel.features.networks.stored_networks import MissingNetworkError

    rows = []
    for name in FEATURES:
        try:
            features = chosen_features("pictures", name)
        except MissingNetworkError as error:
            sys.stderr.write(f"pictures by {name} are not measured: {error}\n")
            continue
        width = item_features("pictures", features)([drawn((96, 64), 0)]).shape[1]
        here = made(folder / name, n, width, kind="pictures", features=features)
        for said, size in SIZES.items():
            pictures = [drawn(size, seed) for seed in range(1 + FOLLOWING)]
            with served(here.folder) as server:
                send = partial(asked, server.port, "POST", "/api/tag")
                answers = [send(picture) for picture in pictures]
            if any(len(answer["suggestions"]) != 10 for _, answer in answers):
                raise RuntimeError("a picture has too few suggestions")
            first, *others = (round(1e3 * seconds, 1) for seconds, _ in answers)
            rows.append(
                {
                    "items": n,
                    "features": name,
                    "picture": said,
                    "kb": round(sum(map(len, pictures)) / len(pictures) / 1000),
                    "seconds_from_start_to_ok": round(server.seconds, 2),
                    "first_answer_ms": first,
                    f"half_of_the_next_{FOLLOWING}_within_ms": round(float(np.median(others)), 1),
                    "slowest_of_them_ms": max(others),
                }
            )
    return rows


def complaints(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What is slower, or grows more, than allowed."""
    for row in rows:
        if row.get("95_percent_within_ms", 0) > SLOWEST_MS and "load" in row:
            yield f"{row['load']}, {row['request']}: {row['95_percent_within_ms']} ms"
        if row.get("first_answer_ms", 0) > SLOWEST_PICTURE_MS:
            yield f"{row['features']}, {row['picture']}: {row['first_answer_ms']} ms"
        memory = [mib for name, mib in row.items() if name.startswith("mib_after")]
        if memory and memory[-1] > GROWTH * memory[0]:
            yield f"{row['load']}: the memory has grown, {memory} MiB"


def measured(folder: Path, n: int, seconds: int) -> list[dict[str, Any]]:
    """All reported rows; an error if an answer was wrong or showed half of a change."""
    here = made(folder / "vectors", n, kind="vectors")
    calls = alone(here, n)
    direct = {CALLED[name]: float(np.median(times)) for name, times in calls.items()}
    rows: list[dict[str, Any]] = [
        {"called_alone": name, "calls": len(times), **milliseconds(times)}
        for name, times in calls.items()
    ]
    wrong = []
    loads = {f"{READERS} clients": 0.0, f"{READERS} clients and a writer": CHANGES_A_SECOND}
    for name, changes in loads.items():
        found = under_load(here, n, seconds, changes)
        rows += load_rows(name, found, seconds, direct)
        wrong += [f"{name}, {said}" for said in found["said"]]
    if wrong:
        raise SystemExit("\n".join(["some answers were wrong:", *wrong, json.dumps(rows)]))
    return rows + dropped_pictures(folder, n)


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--call", type=Path)
    given = parser.parse_args()
    if given.call is not None:
        here = Made(given.call, [], given.call.with_suffix(".npy"))
        print(json.dumps(called(here, given.items)))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), given.items, given.seconds)
    for said in complaints(rows):
        sys.stderr.write(f"slower or larger than it should be: {said}\n")
    report(QUESTION, rows, ("fastapi", "uvicorn", "pillow", "onnxruntime"))


if __name__ == "__main__":
    main()
