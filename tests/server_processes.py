"""The service as processes: started by the command, or forked after all imports.

Only 127.0.0.1 is ever contacted.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 60  # seconds until a test fails, even on a busy machine

NURSERY = """
import functools, json, os, sys
from pathlib import Path

from nearlabel.app import server, service_settings
from nearlabel.cli import run
from nearlabel.collection import Collection, NewItem


def live(words, log, seconds):
    for number in (1, 2):
        os.dup2(os.open(log + (".out", ".err")[number - 1], os.O_WRONLY | os.O_CREAT), number)
    if seconds:
        settings = service_settings.ServiceSettings
        service_settings.ServiceSettings = functools.partial(settings, seconds=seconds)
    os._exit(run(words))

# What servers need is imported once, also what is only imported when something is asked.
with Collection.create(sys.argv[1], kind="vectors") as collection:
    collection.add([NewItem(bytes([n] * 32), [n, 1]) for n in range(1, 20)])
    collection.tag([*range(1, 18)], "tag")
    collection.suggest(1)
    server.create_app(collection, service_settings.ServiceSettings(Path("uploads"))).openapi()
print("ready", flush=True)
for line in sys.stdin:
    what, *given = json.loads(line)
    if what == "start":
        process = os.fork()
        if not process:
            live(*given)
        print(process, flush=True)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(*given, 0)[1]), flush=True)
"""


class Answer(NamedTuple):
    """What a server has sent."""

    status: int | None
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        """The code of an error response."""
        with suppress(ValueError, TypeError, KeyError):
            return str(json.loads(self.body)["error"]["code"])
        return None


class Server:
    """A server that listens on this machine."""

    def __init__(self, process: int, port: int) -> None:
        self.process, self.port = process, port

    @contextmanager
    def connected(self, seconds: float = PATIENCE) -> Iterator[socket.socket]:
        """A connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            yield connection

    def answer(self, content: bytes, *, is_all: bool = False, seconds: float = PATIENCE) -> Answer:
        """The first response to raw bytes; `is_all` closes the sending side."""
        return first_answer(self.everything(content, is_all=is_all, seconds=seconds))

    def everything(
        self, content: bytes, *, is_all: bool = False, seconds: float = PATIENCE
    ) -> bytes:
        """The whole response to raw bytes, until the server closes the connection."""
        with self.connected(seconds) as connection:
            with suppress(OSError):  # it may have seen enough
                connection.sendall(content)
                if is_all:
                    connection.shutdown(socket.SHUT_WR)
            return until_closed(connection)

    def request(self, method: str, address: str, json_: Any = None, **headers: str) -> Answer:
        """The response to a valid request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            body = None if json_ is None else json.dumps(json_)
            if body:
                headers["Content-Type"] = "application/json"
            connection.request(method, address, body, headers)
            found = connection.getresponse()
            return Answer(found.status, dict(found.getheaders()), found.read())
        finally:
            connection.close()

    def is_well(self) -> bool:
        """Whether it answers within a second, in one of a few attempts on a busy machine."""
        request = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        for _ in range(10):
            with suppress(TimeoutError):
                return self.answer(request, seconds=1).status == 200
        return False

    def tell(self, kind: signal.Signals) -> None:
        """Send the process a signal."""
        os.kill(self.process, kind)


class Nursery:
    """A process that has imported all that servers need, and forks them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._started, self._ended = folder, list[int](), set[int]()
        command = [sys.executable, "-c", NURSERY, str(folder / "warm")]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._said() == "ready"

    def server(self, *words: str, seconds: float | None = None) -> Server:
        """A new server: the command ``nearlabel serve`` with these words, on a free port."""
        log = str(self._folder / f"{len(self._started)}")
        process = int(self._asked("start", ["serve", *words, "--port", "0"], log, seconds))
        self._started.append(process)
        return Server(process, port_of(Path(log + ".out"), Path(log + ".err")))

    def exit_code(self, server: Server) -> int:
        """Wait for the end of a server."""
        code = int(self._asked("wait", server.process))
        self._ended.add(server.process)
        return code

    def errors(self, server: Server) -> str:
        """What a server has written to standard error."""
        log = self._folder / f"{self._started.index(server.process)}.err"
        return log.read_text(encoding="utf-8")

    def close(self) -> None:
        """Kill all servers."""
        for process in {*self._started} - self._ended:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.kill()
        self._process.communicate()

    def _asked(self, *words: Any) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def started_server(words: Sequence[str], log: Path) -> Iterator[Server]:
    """A server that was started by the command ``nearlabel serve`` with these words."""
    command = [str(Path(sys.executable).with_name("nearlabel")), "serve", *words, "--port", "0"]
    out, error = log.with_suffix(".out"), log.with_suffix(".err")
    with out.open("wb") as stdout, error.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
    try:
        yield Server(process.pid, port_of(out, error))
    finally:
        process.kill()
        process.wait()


def port_of(out: Path, error: Path) -> int:
    """The port in the first line that a server writes."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        said = out.read_text(encoding="utf-8") if out.exists() else ""
        if found := re.search(r"http://[^/]+:(\d+)/", said):
            return int(found[1])
        if "nearlabel: " in (said := error.read_text(encoding="utf-8") if error.exists() else ""):
            break  # a reason why it does not
        time.sleep(0.01)
    raise AssertionError(said)


def until_closed(connection: socket.socket) -> bytes:
    """All that comes from a connection until the other side closes it."""
    received = b""
    with suppress(ConnectionError):
        while part := connection.recv(2**16):
            received += part
    return received


def first_answer(received: bytes) -> Answer:
    """The first response in some bytes; its status is None if there is none."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    found = re.match(r"HTTP/1\.1 (\d{3})", first)
    pairs = (line.split(": ", 1) for line in lines)
    headers = {name.lower(): value for name, value in pairs}
    length = int(headers.get("content-length", len(body)))
    return Answer(int(found[1]) if found else None, headers, body[:length])
