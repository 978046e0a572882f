"""The workers of a Dask cluster: connecting to them, and running calls on them."""

from __future__ import annotations

import logging
import os
import pkgutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearlabel import __version__
from nearlabel.common.extras import extra_module
from nearlabel.common.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 10  # seconds that a scheduler has to answer


class ClusterError(ConnectionError):
    """A cluster that cannot be used, and why."""


def dask_module(name: str) -> Any:
    """Import a module of Dask; an error names the extra that installs it."""
    return extra_module(name, "nl.distributed needs Dask", "distributed")


@contextmanager
def connected(client: Client | str | None = None) -> Iterator[Client]:
    """A client: the given one, one for a scheduler address, or one for workers on this machine.

    None means the current client if there is one.
    """
    distributed = dask_module("distributed")
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            client = "local"
    if not isinstance(client, str):
        if not hasattr(client, "submit") or not hasattr(client, "nthreads"):
            raise TypeError(
                "client must be a dask.distributed.Client, the address of a scheduler, 'local' or "
                f"None; got {type(client).__name__}"
            )
        if getattr(client, "asynchronous", False):
            raise TypeError("client must not be asynchronous; pass Client(…) without asynchronous=")
        if getattr(client, "status", None) == "closed":
            raise ClusterError("client is closed; pass one that is connected to a cluster")
        yield client
    elif client == "local":
        with _without_interrupts():
            # Errors of workers are raised in this process, so they are not printed as well.
            cluster = distributed.LocalCluster(
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        with cluster, distributed.Client(cluster) as own:
            yield own
    else:
        try:
            own = distributed.Client(client, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise ClusterError(f"no Dask scheduler answers at {client}: {error}") from None
        with own:
            yield own


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C; processes that are started meanwhile never receive it.

    It is meant for this process, which stops its workers in order.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # would otherwise start now, and let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_workers(client: Client, folder: Path) -> None:
    """Check that the cluster has this version of nearlabel and can write to the folder."""
    if not client.nthreads():
        raise ClusterError(f"the cluster at {client.scheduler_info()['address']} has no workers")
    # A function of the standard library: nearlabel may be missing on a worker.
    asked = pkgutil.resolve_name, "nearlabel:__version__"
    answers = client.run(*asked, on_error="return")
    versions = {f"worker {worker}": answer for worker, answer in answers.items()}
    try:  # the scheduler unpickles the calls, too
        versions["the scheduler"] = client.run_on_scheduler(*asked)
    except ImportError as error:
        versions["the scheduler"] = error
    for who, version in versions.items():
        if isinstance(version, ImportError):
            raise ClusterError(f"{who} cannot import nearlabel: {version}")
        if version != __version__:
            raise ClusterError(f"{who} has nearlabel {version}, but this process has {__version__}")
    for worker, problem in client.run(_problem_with, str(folder)).items():
        if problem is not None:
            raise ClusterError(
                f"worker {worker} {problem} the folder {folder}: folder= must be one that all "
                "workers share"
            )


def check_files(client: Client, paths: Sequence[str], name: str) -> None:
    """Check that all workers see the blocks."""
    for worker, missing in client.run(_first_missing, list(paths)).items():
        if missing is not None:
            raise FileNotFoundError(f"{name}: worker {worker} does not see {missing}")


def run_calls(
    client: Client,
    function: Callable[..., Any],
    calls: Sequence[tuple[object, ...]],
    *,
    uses: Sequence[tuple[int, ...]] | None = None,
    sizes: Sequence[int] | None = None,
    take: Callable[[int, Any], None] | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Call a function on the workers; return its results in the order of the calls.

    Parameters
    ----------
    calls : sequence of tuples
        The arguments of each call. They should be small, such as paths and numbers.
    uses : sequence of tuples of int, optional
        The blocks that each call writes to; calls that share a block do not run at the same
        time.
    sizes : sequence of int, optional
        The share of each call in the work, for progress.
    take : callable, optional
        Called with the number and the result of each call as it ends, instead of returning it.
    """
    distributed = dask_module("distributed")
    uses = [()] * len(calls) if uses is None else uses
    sizes = [1] * len(calls) if sizes is None else sizes
    results: list[Any] = [None] * len(calls)
    take = results.__setitem__ if take is None else take
    waiting, busy = dict.fromkeys(range(len(calls))), set[int]()
    running: dict[object, int] = {}
    deaths, done, total = Counter[int](), 0, sum(sizes)
    most_deaths = 4  # how often a call may fail because its worker died
    finished = distributed.as_completed()
    try:
        while waiting or running:
            # Some calls wait on the workers, so that none is idle. If all workers are restarting,
            # one call waits for them.
            free = max(2 * sum(client.nthreads().values()), 1) - len(running)
            for number in list(islice(waiting, 2048)):
                if free <= 0:
                    break
                if busy.isdisjoint(uses[number]):
                    busy.update(uses[number])
                    del waiting[number]
                    future = client.submit(function, *calls[number], pure=False)
                    running[future] = number
                    finished.add(future)
                    free -= 1
            future = next(finished)
            number = running.pop(future)
            busy.difference_update(uses[number])
            try:
                result = future.result()
            except distributed.KilledWorker:
                deaths[number] += 1
                if deaths[number] == most_deaths:
                    raise ClusterError(
                        f"workers died {most_deaths} times during {function.__name__}: their "
                        "memory may be too small for two blocks"
                    ) from None
                waiting[number] = None
                continue
            take(number, result)
            done += sizes[number]
            if progress is not None:
                progress(done, total)
    finally:
        client.cancel(list(running))
    return results


def _problem_with(folder: str) -> str | None:
    if not Path(folder).is_dir():
        return "does not see"
    return None if os.access(folder, os.W_OK) else "cannot write to"


def _first_missing(paths: list[str]) -> str | None:
    return next((path for path in paths if not Path(path).is_file()), None)
