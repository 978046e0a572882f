"""The service as a process: its address, slow clients, and its shutdown."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nearlabel.app.service import create_app
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection
from nearlabel.common.threads import one_blas_thread

_CONNECTIONS = 500
_SLOWEST = 10_000  # minimum bytes per second that a client must read
_LAST_SECONDS = 20  # for requests under way at shutdown


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket listening on an address; OSError if that is not possible."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio sets TCP_NODELAY only on sockets known to be TCP; without it, answers take 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_CONNECTIONS)
    except BaseException:
        bound.close()
        raise
    return bound


def serve(
    collection: Collection,
    settings: ServiceSettings,
    listening: socket.socket,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve a collection until SIGINT or SIGTERM; `started` is called when requests are answered.

    Requests under way are still answered. The collection is not closed.
    """
    server = server_of(collection, settings, started)
    # Concurrent requests share the cores: if each used all of them, they would wait for each other.
    with one_blas_thread:
        # uvicorn raises the signals again that have stopped it: this takes them a second time.
        kinds = (signal.SIGINT, signal.SIGTERM)
        before = {kind: signal.signal(kind, server.handle_exit) for kind in kinds}
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def server_of(
    collection: Collection, settings: ServiceSettings, started: Callable[[], None] = lambda: None
) -> uvicorn.Server:
    """The server of a collection, not started yet."""
    config = uvicorn.Config(
        create_app(collection, settings, started),
        http=_protocol(settings.seconds),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_LAST_SECONDS,
        timeout_keep_alive=30,
    )
    return uvicorn.Server(config)


def _protocol(seconds: float) -> type[H11Protocol]:
    """A protocol with timeouts for the head of a request and for readers of answers."""

    class Impatient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _left: tuple[object, int] = (None, 0)  # the answer and its unread bytes at the last check

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def _watch(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(seconds, self._look)

        def _look(self) -> None:
            unread, (answer, before) = self.transport.get_write_buffer_size(), self._left
            if self.transport.is_closing() and not unread:
                return
            is_idle = not unread and (self.cycle is None or self.cycle.response_complete)
            is_half = is_idle and self.timeout_keep_alive_task is None  # an incomplete head
            # An answer counts as complete once it is buffered, even if nobody reads it.
            is_stuck = unread and answer is self.cycle and before - unread < seconds * _SLOWEST
            if is_half or is_stuck:
                self.transport.abort()
                return
            self._left = (self.cycle, unread)
            self._timer = self.loop.call_later(seconds, self._look)

    return Impatient
