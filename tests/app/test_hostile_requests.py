"""Server processes with hostile clients: raw bytes, slow clients, signals and kills."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest
from collection_lives import picture
from server_processes import (
    PATIENCE,
    Nursery,
    first_answer,
    started_server,
    until_closed,
)

from nearlabel.collection import Collection, NewItem
from nearlabel.collection.records import vector_content

for module in ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "PIL"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals and fork")

MOST = 2**20  # bytes of a request
SHORT = 0.5  # seconds in which a request must arrive, in tests of this limit
TAGS = [letter * 900 for letter in "abcdefghijklmnopqrst"]


def make_collection(path, n=250):
    """A collection with responses of several megabytes."""
    rows = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    with Collection.create(path, kind="vectors") as collection:
        named = [(f"v{number}", row) for number, row in enumerate(rows)]
        collection.add([NewItem(vector_content(name, row), row, name=name) for name, row in named])
        collection.tag(range(1, n + 1), TAGS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The command as started by users."""
    folder = tmp_path_factory.mktemp("server")
    make_collection(folder / "c", 40)
    words = [str(folder / "c"), "--max-upload", "1", "--log", "json"]
    with started_server(words, folder / "log") as started:
        yield started


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def impatient(nursery, tmp_path_factory):
    """A server with a timeout of half a second."""
    folder = tmp_path_factory.mktemp("impatient")
    make_collection(folder / "c")
    return nursery.server(str(folder / "c"), seconds=SHORT)


# Invalid requests.

HOST = b"Host: 127.0.0.1"
CLOSE = b"Connection: close"
JSON = b"Content-Type: application/json"


def request(line, *headers, body=b""):
    """A request with the required headers, after which the connection is closed."""
    return b"\r\n".join([line + b" HTTP/1.1", HOST, CLOSE, *headers, b"", body])


def got(path, *headers):
    return request(b"GET " + path, *headers)


def posted(body, *headers, to=b"/api/tag"):
    length = b"Content-Length: %d" % len(body)
    return request(b"POST " + to, JSON, length, *headers, body=body)


def chunked(*parts):
    headers = (JSON, b"Transfer-Encoding: chunked")
    return request(b"POST /api/tag", *headers, body=b"".join(parts))


OUTSIDE = [
    b"/static/../../../../../../etc/passwd",
    b"/static/../server.py",
    b"/static/%2e%2e/server.py",
    b"/static/%2e%2e%2fserver.py",
    b"/static/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    b"/static/%252e%252e/server.py",
    b"/static/....//server.py",
    b"/static/./../server.py",
    b"/static//etc/passwd",
    b"/static/%2fetc%2fpasswd",
    b"/static/..\\server.py",
    b"/static/..%5cserver.py",
    b"/static/C:%5cserver.py",
    b"/static/%00",
    b"/static/page.css%00.png",
    b"/static/..%00/server.py",
    b"/static/%ff%fe",
    b"/static/%c0%ae%c0%ae/server.py",
    b"/static/",
    b"/static/" + b"x" * 5000,
    b"/static/" + b"a/" * 5000,
    b"/../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"//etc/passwd",
    b"//evil.example/",
    b"/\\evil.example",
    b"/templates/grid.html",
    b"/api/items/1/../../server.py",
    b"/thumbnails/%2e%2e%2f1.jpg",
    b"/thumbnails/1",
    b"/%00",
    b"/api/items/%00",
    b"http://evil.example/api/items",
    b"/" + b"%41" * 20_000,
]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: ascii(path[:50]))
def test_addresses_cannot_reach_other_files(server, path):
    answer = server.answer(got(path))
    assert answer.status in (404, 422)
    assert answer.code in ("not_found", "invalid")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert server.is_well()


HOSTILE = {
    "nothing": (b"", None, None),
    "empty lines": (b"\r\n" * 1000, 400, None),
    "no HTTP": (b"hello\r\n\r\n", 400, None),
    "zeros": (bytes(1000), 400, None),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), 400, None),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", 400, None),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403, "host_refused"),
    "HTTP/9": (got(b"/api/health").replace(b"HTTP/1.1", b"HTTP/9.9"), 200, None),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400, None),
    "two spaces": (got(b" /"), 400, None),
    "letters that are none": (got("/é".encode()), 400, None),
    "a line break in an address": (got(b"/a\nb"), 400, None),
    "an endless first line": (b"GET /" + b"x" * 200_000, 400, None),
    "an endless header": (got(b"/", b"X: " + b"x" * 200_000), 400, None),
    "endless headers": (got(b"/", *[b"X%d: y" % n for n in range(20_000)]), 400, None),
    "many headers": (got(b"/api/health", *[b"X%d: y" % n for n in range(3000)]), 200, None),
    "a header without a name": (got(b"/", b": x"), 400, None),
    "a header without a colon": (got(b"/", b"x"), 400, None),
    "a header with a space before its colon": (got(b"/", b"X : y"), 400, None),
    "a header with a zero": (got(b"/", b"X: a\0b"), 400, None),
    "a header with a return": (got(b"/", b"X: a\rb"), 400, None),
    "two hosts": (got(b"/", b"Host: localhost"), 400, None),
    "no host": (got(b"/").replace(HOST + b"\r\n", b""), 400, None),
    "HTTP/1.0 without a host": (b"GET / HTTP/1.0\r\n\r\n", 403, "host_refused"),
    "HTTP/1.0": (b"GET /api/health HTTP/1.0\r\nHost: localhost\r\n\r\n", 200, None),
    "another host in the address": (got(b"http://evil.example/"), 404, "not_found"),
    "two lengths": (posted(b"{}", b"Content-Length: 3"), 400, None),
    "one length twice": (posted(b"{}", b"Content-Length: 2"), 422, "invalid"),
    "two lengths in one": (request(b"POST /api/undo", b"Content-Length: 1, 2"), 400, None),
    "a length below zero": (request(b"POST /api/undo", b"Content-Length: -1"), 400, None),
    "a length with a sign": (request(b"POST /api/undo", b"Content-Length: +1"), 400, None),
    "a length that is none": (request(b"POST /api/undo", b"Content-Length: 0x1"), 400, None),
    "a length over the limit": (
        request(b"POST /api/tag", JSON, b"Content-Length: %d" % (MOST + 1)),
        413,
        "too_large",
    ),
    "an endless length": (request(b"POST /api/tag", b"Content-Length: " + b"9" * 30), 400, None),
    "a large length": (request(b"POST /x", b"Content-Length: " + b"9" * 19), 413, "too_large"),
    "leave to send too much": (
        request(b"POST /api/tag", b"Expect: 100-continue", b"Content-Length: 99999999"),
        413,
        "too_large",
    ),
    "too little, then nothing": (posted(b"{}").replace(b": 2", b": 99"), None, None),
    "more than it says": (posted(b"{}junk").replace(b": 6", b": 2"), 422, "invalid"),
    "chunks": (chunked(b"2\r\n{}\r\n", b"0\r\n\r\n"), 422, "invalid"),
    "chunks over the limit": (
        chunked(
            b"10000\r\n" + bytes(2**16) + b"\r\n" + 20 * (b"10000\r\n" + bytes(2**16) + b"\r\n")
        ),
        413,
        "too_large",
    ),
    "chunks without end": (chunked(b"2\r\n{}\r\n"), None, None),
    "chunks that are none": (chunked(b"xyz\r\n{}\r\n"), (400, None), None),
    "chunks with a sign": (chunked(b"+2\r\n{}\r\n0\r\n\r\n"), (400, None), None),
    "an endless chunk": (chunked(b"f" * 30 + b"\r\n"), (400, None), None),
    "an endless line of a chunk": (chunked(b"2;" + b"x" * 200_000), (400, None), None),
    "chunks and a length": (
        chunked(b"2\r\n{}\r\n0\r\n\r\n").replace(JSON, JSON + b"\r\nContent-Length: 5"),
        (422, 400),
        None,
    ),
    "chunks twice": (
        chunked(b"2\r\n{}\r\n0\r\n\r\n").replace(b": chunked", b": chunked, chunked"),
        400,
        None,
    ),
    "another encoding": (chunked(b"").replace(b": chunked", b": gzip, chunked"), 400, None),
    "a packed body": (posted(b"\x1f\x8b", b"Content-Encoding: gzip"), 422, "invalid"),
    "a method that is none": (request(b"BREW /api/items"), 405, "method_not_allowed"),
    "a method in small letters": (request(b"get /api/items"), 405, "method_not_allowed"),
    "a long method": (request(b"M" * 5000 + b" /api/items"), 405, "method_not_allowed"),
    "TRACE": (request(b"TRACE /api/items"), 405, "method_not_allowed"),
    "OPTIONS of everything": (request(b"OPTIONS *"), 404, "not_found"),
    "a tunnel": (request(b"CONNECT evil.example:443"), 404, "not_found"),
    "DELETE of everything": (request(b"DELETE /api/items"), 405, "method_not_allowed"),
    "a range of an answer": (got(b"/api/health", b"Range: bytes=0-1"), 200, None),
    "a range of a file": (got(b"/static/page.css", b"Range: bytes=0-1"), 206, None),
    "a range that is none": (got(b"/static/page.css", b"Range: bytes=9-1"), (400, 416), None),
    "a range beyond": (got(b"/static/page.css", b"Range: bytes=99999999-"), 416, None),
    "many ranges": (
        got(b"/static/page.css", b"Range: bytes=" + b",".join(b"%d-" % n for n in range(9000))),
        (200, 206, 400, 416),
        None,
    ),
    "a web socket": (
        got(
            b"/api/health",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            b"Sec-WebSocket-Version: 13",
        ).replace(CLOSE, b"Connection: Upgrade, close"),
        200,
        None,
    ),
    "HTTP/2 by upgrade": (got(b"/api/health", b"Upgrade: h2c", b"HTTP2-Settings: AA"), 200, None),
    "deep JSON": (posted(b"[" * 500_000, to=b"/api/decisions"), 400, "bad_request"),
    "a long number": (
        posted(b'{"ids": [' + b"9" * 900_000 + b"]}", to=b"/api/decisions"),
        400,
        "bad_request",
    ),
    "a long vector": (posted(b'{"vector": [' + b"0," * 499_999 + b"0]}"), 422, "invalid"),
    "many keys": (
        posted(json.dumps(dict.fromkeys(map(str, range(50_000)))).encode()),
        422,
        "invalid",
    ),
    "a form without end": (
        request(
            b"POST /api/items",
            b"Content-Type: multipart/form-data; boundary=b",
            b"Content-Length: 900000",
            body=b"--b\r\nContent-Disposition: form-data; name=file; filename=x\r\n\r\n".ljust(
                900_000
            ),
        ),
        422,
        "invalid",
    ),
    "many parts": (
        request(
            b"POST /api/items",
            b"Content-Type: multipart/form-data; boundary=b",
            b"Content-Length: 1000000",
            body=(b'--b\r\nContent-Disposition: form-data; name="tags"\r\n\r\n\r\n' * 20_000)[
                : 10**6
            ],
        ),
        400,
        "bad_request",
    ),
    "a long boundary": (
        request(
            b"POST /api/items",
            b"Content-Type: multipart/form-data; boundary=" + b"b" * 50_000,
            b"Content-Length: 2",
            body=b"--",
        ),
        400,
        "bad_request",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_request_is_refused(server, name):
    content, wanted, code = HOSTILE[name]
    statuses = wanted if isinstance(wanted, tuple) else (wanted,)
    answer = server.answer(content, is_all=None in statuses)
    assert answer.status in statuses
    assert answer.code == code or code is None
    assert b"Traceback" not in answer.body
    assert "server" not in answer.headers
    assert server.is_well()


def test_refused_requests_change_nothing(server):
    assert json.loads(server.request("GET", "/api/changes").body)["changes"][0]["number"] == 2


def test_requests_in_one_piece_are_answered_in_their_order(server):
    keeps = [got(b"/api/items/%d" % n).replace(CLOSE + b"\r\n", b"") for n in (1, 2, 99)]
    body = posted(b'{"id": 3}').replace(CLOSE + b"\r\n", b"")
    received = server.everything(b"".join([*keeps, body, got(b"/api/items/4")]))
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [one[:3] for one in answers] == [b"200", b"200", b"404", b"200", b"200"]
    assert [json.loads(answers[n].partition(b"\r\n\r\n")[2])["id"] for n in (0, 1, 3, 4)] == [
        1,
        2,
        3,
        4,
    ]


def test_a_refused_body_is_not_parsed_as_a_request(server):
    """Bytes after a refused head must not be answered as a request."""
    inner = got(b"/api/items/1").replace(CLOSE, b"Connection: keep-alive")
    outer = posted(inner, b"Origin: null").replace(CLOSE + b"\r\n", b"", 1)
    received = server.everything(outer + got(b"/api/items/2"))
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [one[:3] for one in answers] == [b"403", b"200"]
    assert json.loads(answers[1].partition(b"\r\n\r\n")[2])["id"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="may need more open files than are allowed")
def test_too_many_connections_are_refused_and_forgotten(server):
    with contextlib.ExitStack() as stack:
        for _ in range(505):
            stack.enter_context(server.connected())
        assert server.answer(got(b"/api/health")).status == 503
    for _ in range(100):
        if server.answer(got(b"/api/health")).status == 200:
            break
        time.sleep(0.05)
    assert server.is_well()


def test_disconnected_clients_are_forgotten(server):
    for _ in range(50):
        with server.connected() as connection:
            connection.sendall(got(b"/api/items?limit=1000"))
            # Closed with a reset, though an answer is under way.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert server.is_well()


# A token.


@pytest.fixture(scope="module")
def guarded(nursery, tmp_path_factory):
    """A server for other machines, and its token."""
    folder = tmp_path_factory.mktemp("guarded")
    make_collection(folder / "c", 40)
    words = ("--host", "0.0.0.0", "--token-file", str(folder / "token"), "--log", "json")
    server = nursery.server(str(folder / "c"), *words)
    return server, (folder / "token").read_text().strip()


@pytest.mark.parametrize(
    "path",
    [
        b"/api/items",
        b"/",
        b"/metrics",
        b"/api/openapi.json",
        b"//api/health",
        b"/api/health/../items",
        b"/x/../api/health",
        b"/%2fapi/health",
        b"/API/HEALTH",
        b"http://127.0.0.1/api/health",
    ],
)
def test_without_a_token_nothing_is_revealed(guarded, path):
    server, token = guarded
    answer = server.answer(got(path))
    if path == b"/api/health/../items":  # it only begins like a public address
        assert answer.status == 404
    else:
        assert (answer.status, answer.code) == (401, "token_needed")
    bearer = b"Authorization: Bearer "
    assert server.answer(got(b"/api/items", bearer + b"x" * 40)).status == 401
    assert server.answer(got(b"/api/items", bearer + token.encode())).status == 200


def test_the_token_and_queries_are_not_logged(guarded, nursery):
    server, token = guarded
    server.answer(got(f"/api/items?token={token}&q=secret-word".encode()))
    server.answer(got(b"/secret", b"Authorization: Bearer " + token.encode()))
    server.answer(got(b"/", b"Cookie: nearlabel=secret-word", b"X: secret-word\0"))
    written = nursery.errors(server)
    assert '"path": "/secret"' in written
    assert token not in written
    assert "secret-word" not in written
    for line in written.splitlines():
        json.loads(line)


# Slow clients.


def trickled(connection, content, pause):
    """Send byte by byte until all is sent, or the server closes the connection."""
    connection.setblocking(True)
    for at in range(len(content)):
        try:
            connection.sendall(content[at : at + 1])
        except ConnectionError:
            return
        connection.settimeout(pause)
        try:
            if not connection.recv(1, socket.MSG_PEEK):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return


def test_a_head_sent_byte_by_byte(impatient):
    content = got(b"/api/health", b"X: " + b"x" * 10_000)
    begin = time.monotonic()
    with impatient.connected() as connection:
        trickled(connection, content, 0.05)
        assert until_closed(connection) == b""
    assert time.monotonic() - begin < PATIENCE
    assert impatient.is_well()


def test_an_idle_connection(impatient):
    assert impatient.everything(b"") == b""


def test_an_endless_second_head(impatient):
    with impatient.connected() as connection:
        connection.sendall(got(b"/api/health").replace(CLOSE + b"\r\n", b""))
        assert connection.recv(2**16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /api/it")
        assert not until_closed(connection).startswith(b"HTTP")


@pytest.mark.parametrize("address", [b"/api/tag", b"/api/decisions", b"/api/items"])
def test_a_body_sent_byte_by_byte(impatient, address):
    content = posted(b'{"id": ' + b" " * 10_000 + b"1}", to=address)
    head, _, body = content.partition(b"\r\n\r\n")
    with impatient.connected() as connection:
        connection.sendall(head + b"\r\n\r\n")
        trickled(connection, body, 0.05)
        answer = first_answer(until_closed(connection))
    assert (answer.status, answer.code) == (408, "too_slow")
    assert impatient.is_well()


def test_a_form_that_never_arrives(impatient):
    headers = (b"Content-Type: multipart/form-data; boundary=b", b"Content-Length: 1000")
    content = request(b"POST /api/items", *headers, body=b"--b\r\n")
    assert impatient.answer(content).status == 408


def test_a_client_that_does_not_read(impatient):
    whole = len(impatient.everything(got(b"/api/items?limit=1000")))
    with socket.socket() as connection:
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # or all would fit in it
        connection.connect(("127.0.0.1", impatient.port))
        connection.sendall(got(b"/api/items?limit=1000"))
        time.sleep(4 * SHORT)
        assert impatient.is_well()
        assert 0 < len(until_closed(connection)) < whole


def test_many_slow_clients_do_not_keep_others_waiting(impatient):
    with contextlib.ExitStack() as stack:
        for number in range(60):
            connection = stack.enter_context(impatient.connected())
            whole = (got(b"/api/items?limit=20"), posted(b"{}"), got(b"/"))[number % 3]
            connection.sendall(whole if number % 3 == 0 else whole[:-1])
        assert impatient.is_well()
    assert impatient.is_well()


# The end.


def assert_whole(folder, tag, ids):
    """Check that a collection can be opened and has the acknowledged changes."""
    with Collection(folder) as collection:
        assert collection.notes == []
        assert collection.ids(tag) == ids
        assert collection.verify()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_progress_is_answered_at_shutdown(nursery, tmp_path, kind):
    make_collection(tmp_path / "c", 40)
    server = nursery.server(str(tmp_path / "c"))
    body = json.dumps({"ids": [1, 2, 3], "tags": ["last"]}).encode()
    content = posted(body, to=b"/api/decisions")
    with server.connected() as idle, server.connected() as connection:
        connection.sendall(content[:-5])
        assert server.is_well()  # so it has read that much
        server.tell(kind)
        assert until_closed(idle) == b""
        connection.sendall(content[-5:])
        assert first_answer(until_closed(connection)).status == 200
    assert nursery.exit_code(server) == 0
    assert "all changes are stored" in nursery.errors(server)
    assert "Traceback" not in nursery.errors(server)
    assert_whole(tmp_path / "c", "last", [1, 2, 3])


def test_a_server_stopped_right_after_its_start(nursery, tmp_path):
    """Before it has loaded its model."""
    make_collection(tmp_path / "c")
    server = nursery.server(str(tmp_path / "c"))
    server.tell(signal.SIGTERM)
    assert nursery.exit_code(server) == 0
    assert "Traceback" not in nursery.errors(server)
    assert_whole(tmp_path / "c", TAGS[0], [*range(1, 251)])


class Writer(threading.Thread):
    """Adds pictures with tags, and remembers which of them were acknowledged."""

    def __init__(self, port, numbers):
        super().__init__(daemon=True)
        self._port, self._numbers = port, numbers
        self.acknowledged = {}

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                number = next(self._numbers)
                content, tag = picture(number), f"tag {number}"
                part = b"--b\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n"
                body = part % (b"tags", tag.encode()) + part % (b"file; filename=x", content)
                body += b"--b--\r\n"
                headers = {"Content-Type": "multipart/form-data; boundary=b"}
                connection.request("POST", "/api/items", body, headers)
                answer = connection.getresponse()
                if answer.status == 201:
                    self.acknowledged[number] = json.loads(answer.read())["id"]
        connection.close()


def assert_kept(folder, uploads, acknowledged):
    """Check that everything acknowledged is there: items, their tags and their files."""
    with Collection(folder, readonly=True) as collection:
        items = {item.id: item for item in collection.items()}
    for number, id in acknowledged.items():
        content = picture(number)
        assert items[id].content == hashlib.sha256(content).digest()
        assert items[id].yes == [f"tag {number}"]
        assert (uploads / f"{items[id].content.hex()}.png").read_bytes() == content


@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_acknowledged_changes_survive_a_kill(nursery, tmp_path, kills):
    Collection.create(tmp_path / "c.nearlabel", features="moments").close()
    acknowledged, chance, numbers = {}, random.Random(kills), itertools.count()
    for _ in range(kills):
        server = nursery.server(str(tmp_path / "c.nearlabel"))
        writers = [Writer(server.port, numbers) for _ in range(3)]
        for writer in writers:
            writer.start()
        end = time.monotonic() + PATIENCE
        while not all(writer.acknowledged for writer in writers) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        server.tell(signal.SIGKILL)
        assert nursery.exit_code(server) == -signal.SIGKILL
        for writer in writers:
            writer.join(PATIENCE)
            assert writer.acknowledged
            acknowledged |= writer.acknowledged
        assert_kept(tmp_path / "c.nearlabel", tmp_path / "c-uploads", acknowledged)
    server = nursery.server(str(tmp_path / "c.nearlabel"))
    assert server.request("GET", "/api/items/1").status == 200
    server.tell(signal.SIGTERM)
    assert nursery.exit_code(server) == 0
    with Collection(tmp_path / "c.nearlabel") as collection:
        assert collection.verify()
        assert {*acknowledged.values()} <= {*collection.ids()}
