import hashlib
import io
import re
import socket
import threading
from contextlib import nullcontext, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin, urlsplit
from urllib.request import Request

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.datasets import ChecksumError, FetchError, downloads, fetch
from nearlabel.datasets.public_sets import ELSEWHERE, HOMES, PublicSet

LABELS = ["sea", "sky"]
HEAD = "@relation toy\n@attribute a numeric\n@attribute b numeric\n"
HEAD += "".join(f"@attribute {label} {{0,1}}\n" for label in LABELS) + "@data\n"
TRAIN = (HEAD + "".join(f"{row}.5,{row * row},{row % 2},1\n" for row in range(4))).encode()
TEST = (HEAD + "7,8,1,0\n9,10,0,0\n").encode()
XML = '<labels xmlns="http://mulan.sourceforge.net/labels">'
XML = (XML + "".join(f'<label name="{label}"></label>' for label in LABELS) + "</labels>").encode()
TOY = {"toy-train.arff": TRAIN, "toy-test.arff": TEST, "toy.xml": XML}
MEKA = TRAIN.replace(b"@relation toy", b"@relation 'toy: -C -2'")
HTML = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"
SHAPE = (6, 2, 2)


class Server(ThreadingHTTPServer):
    """Serves files, unless other responses are planned for a path."""

    daemon_threads = False  # so that closing waits for all of them

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.plans, self.asked = {}, {}, []
        self.gone = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def names(self):
        return [path.rpartition("/")[2] for path in self.asked]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        plans = self.server.plans.get(path, [])
        plan = plans.pop(0) if plans else well
        with suppress(ConnectionError):
            plan(self, self.server.files.get(path))

    def answer(self, status, content=b"", length=None, **headers):
        self.send_response(status)
        headers = {"Content_Length": len(content) if length is None else length} | headers
        for name, value in ({"Connection": "close"} | headers).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def well(handler, content):
    return handler.answer(404) if content is None else handler.answer(200, content)


def breaking_off(count):
    """Send `count` bytes and close."""
    return lambda handler, content: handler.answer(200, content[:count], length=len(content))


def answering(status, content=b"", **how):
    return lambda handler, _: handler.answer(status, content, **how)


def chunked(*chunks, end=b"0\r\n\r\n"):
    def plan(handler, _):
        handler.answer(200, Content_Length=None, Transfer_Encoding="chunked")
        for chunk in chunks:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        handler.wfile.write(end)

    return plan


def endless(handler, _):
    handler.answer(200, Content_Length=None, Transfer_Encoding="chunked")
    while True:
        handler.wfile.write(b"1000\r\n" + b"%" * 0x1000 + b"\r\n")


def silent(handler, content):
    handler.answer(200, content[:10], length=len(content))
    handler.server.gone.wait(10)


def hanging_up(handler, _):
    handler.close_connection = True


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No proxy, no pauses, and one more public data set."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(downloads, "_RETRIES", 2)
    monkeypatch.setattr("time.sleep", lambda _: None)
    files = dict.fromkeys(TOY, "https://nowhere.invalid/toy")
    monkeypatch.setitem(HOMES, "toy", PublicSet(SHAPE, files))


@pytest.fixture
def server():
    with Server() as server:
        server.files = {f"/toy/{file}": content for file, content in TOY.items()}
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.gone.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "sets"
    monkeypatch.setenv("NEARLABEL_DATA", str(folder))
    return folder


def content_of(folder):
    """The files in the folder of downloads."""
    downloads = folder / "downloads"
    paths = [path for path in downloads.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(downloads)) for path in paths)


def check_toy(path, folder):
    assert path == folder / "toy.npz"
    data = nl.datasets.load("toy")
    X = [[0.5, 0], [1.5, 1], [2.5, 4], [3.5, 9], [7, 8], [9, 10]]
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(
        data.Y.toarray(), [[0, 1], [1, 1], [0, 1], [1, 1], [1, 0], [0, 0]]
    )
    assert data.label_names.tolist() == LABELS
    assert data.train.tolist() == [True] * 4 + [False] * 2
    assert content_of(folder) == [f"toy/{file}" for file in sorted(TOY)]
    for file, content in TOY.items():
        assert (folder / "downloads" / "toy" / file).read_bytes() == content


def check_nothing(folder, *left):
    """Nothing that looks like a complete file was received."""
    assert not (folder / "toy.npz").exists()
    assert content_of(folder) == sorted(left)


def check_refusal(server, folder, match, *left, error=FetchError):
    """Check that a call fails and leaves only `left`, and that the next one succeeds."""
    with pytest.raises(error, match=match) as caught:
        fetch("toy", mirror=server.address)
    assert "\n" not in str(caught.value)
    check_nothing(folder, *left)
    server.plans.clear()
    check_toy(fetch("toy", mirror=server.address), folder)


def test_a_set_is_fetched_once(server, folder):
    came = []
    path = fetch("toy", mirror=server.address + "/", progress=lambda *told: came.append(told))
    check_toy(path, folder)
    assert server.names() == list(TOY)
    assert came == [(len(content), len(content)) for content in TOY.values()]
    server.asked.clear()
    assert fetch("toy", mirror=server.address) == path
    path.unlink()
    check_toy(fetch("toy", mirror=server.address), folder)
    assert not server.asked


def test_into_another_folder(server, folder, tmp_path):
    path = fetch("toy", mirror=server.address, folder=str(tmp_path / "other"))
    assert path == tmp_path / "other" / "toy.npz"
    assert path.is_file()
    assert not folder.exists()


def test_one_file_with_the_labels_in_its_header(server, folder, monkeypatch):
    monkeypatch.setitem(HOMES, "meka", PublicSet((4, 2, 2), {"meka.arff": ""}))
    server.files["/meka/meka.arff"] = MEKA
    fetch("meka", mirror=server.address)
    data = nl.datasets.load("meka")
    assert data.Y.toarray().tolist() == [[0, 1], [1, 1], [0, 1], [1, 1]]
    assert data.train is None


def test_a_file_of_unknown_length_whose_end_is_marked(server, folder):
    server.plans["/toy/toy-train.arff"] = [chunked(TRAIN[:50], TRAIN[50:])]
    came = []
    check_toy(fetch("toy", mirror=server.address, progress=lambda *told: came.append(told)), folder)
    assert (len(TRAIN), None) in came


def test_a_proxy_of_the_environment_is_used(server, folder, monkeypatch):
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", server.address)
    check_toy(fetch("toy", mirror="http://localhost:9"), folder)


# Connections that break off


def test_a_file_that_breaks_off_is_fetched_again_within_the_call(server, folder):
    server.plans["/toy/toy-train.arff"] = [breaking_off(60), breaking_off(20)]
    check_toy(fetch("toy", mirror=server.address), folder)
    assert server.names() == ["toy-train.arff"] * 2 + list(TOY)


def test_complete_files_are_kept_for_the_next_call(server, folder):
    server.plans["/toy/toy-test.arff"] = [breaking_off(10)] * 3
    match = rf"^{server.address}/toy/toy-test.arff: received only 10 of "
    check_refusal(server, folder, match, "toy/toy-train.arff")
    assert server.names()[1:] == ["toy-test.arff"] * 4 + ["toy.xml"]


def test_an_interrupt_leaves_no_part_of_a_file(server, folder):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("toy", mirror=server.address, progress=interrupt)
    check_nothing(folder)
    check_toy(fetch("toy", mirror=server.address), folder)


@pytest.mark.parametrize("plan", [silent, hanging_up, chunked(TRAIN[:50], end=b"")])
def test_a_connection_that_ends_is_tried_again(server, folder, monkeypatch, plan):
    monkeypatch.setattr(downloads, "_TIMEOUT", 0.5)
    server.plans["/toy/toy-train.arff"] = [plan]
    check_toy(fetch("toy", mirror=server.address), folder)
    assert server.names()[:2] == ["toy-train.arff"] * 2


def test_a_server_that_never_answers(server, folder):
    server.plans["/toy/toy-train.arff"] = [hanging_up] * 3
    check_refusal(server, folder, "toy-train.arff: .*without response")


def test_no_server(folder):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(FetchError, match=rf"127.0.0.1:{port}/toy/toy-train.arff: .*refused"):
        fetch("toy", mirror=f"http://127.0.0.1:{port}")
    check_nothing(folder)


# Responses without a file


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        (answering(404), "toy.xml: HTTP 404 Not Found$"),
        (answering(500), "toy.xml: HTTP 500 Internal Server Error$"),
        (answering(204), "toy.xml: HTTP 204 No Content$"),
        (answering(206, XML), "toy.xml: HTTP 206 Partial Content$"),
        (
            answering(302, Location="file:///etc/passwd"),
            "toy.xml: .*'file:///etc/passwd'",
        ),
        (
            answering(302, Location="ftp://127.0.0.1/toy.xml"),
            "toy.xml: .*'ftp://127.0.0.1/toy.xml'",
        ),
        (answering(200, XML, length=2**31 + 1), "toy.xml: .*2,147,483,649 bytes.*2,147,483,648"),
        (answering(200, XML, Content_Length=None), "toy.xml: .* length"),
        (answering(200, XML, length="many"), "toy.xml: .* length"),
        (answering(200, XML, Content_Encoding="gzip"), "toy.xml: .*'gzip'"),
    ],
)
def test_invalid_responses(server, folder, plan, match):
    server.plans["/toy/toy.xml"] = [plan]
    check_refusal(server, folder, match, "toy/toy-test.arff", "toy/toy-train.arff")
    assert server.names() == [*TOY, "toy.xml"]


def test_an_endless_file_is_refused(server, folder, monkeypatch):
    monkeypatch.setattr(downloads, "_LARGEST", 10**5)
    server.plans["/toy/toy-train.arff"] = [endless]
    check_refusal(server, folder, "toy-train.arff: .*limit of 100,000")


def test_a_redirection_is_followed_but_not_for_ever(server, folder):
    server.files["/moved"] = TRAIN
    server.plans["/toy/toy-train.arff"] = [answering(302, Location="/moved")]
    server.plans["/toy/toy-test.arff"] = [answering(301, Location="/toy/toy-test.arff")] * 99
    check_refusal(server, folder, "toy-test.arff: HTTP 301 .* infinite loop", "toy/toy-train.arff")
    assert server.names()[:2] == ["toy-train.arff", "moved"]


@pytest.mark.parametrize(
    ("start", "target", "is_followed"),
    [
        ("https://host/a", "https://other/b?c=d", True),
        ("https://host/a", "/b", True),
        ("https://host/a", "http://host/b", False),
        ("https://host/a", "http://localhost/b", False),
        ("http://localhost/a", "https://host/b", True),
        ("http://localhost/a", "http://127.0.0.1/b", True),
        ("http://localhost/a", "http://host/b", False),
        ("http://localhost/a", "file:///etc/passwd", False),
    ],
)
def test_no_redirection_to_plain_http(start, target, is_followed):
    with nullcontext() if is_followed else pytest.raises(FetchError, match=f"{target}.* https"):
        redirected = downloads.SecureRedirects().redirect_request(
            Request(start), io.BytesIO(), 302, "Found", Message(), urljoin(start, target)
        )
        assert redirected.full_url == urljoin(start, target)


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        (
            "toy-train.arff",
            HTML,
            r"toy-train.arff: .* begins with b'<!DOCTYPE html>\\n<html>",
        ),
        (
            "toy-test.arff",
            b"\0\x1b[31m" * 9,
            r"toy-test.arff: .* begins with b'\\x00\\x1b\[",
        ),
        ("toy-test.arff", b"", "toy-test.arff: .* begins with b''"),
        (
            "toy.xml",
            HTML,
            r"toy.xml: .* begins with b'<!DOCTYPE",
        ),
        ("toy.xml", XML.replace(b"sky", b"sun"), r"toy-train.arff: .*'sun'"),
        ("toy.xml", XML[:-9], "toy.xml: .* begins with"),
        ("toy-test.arff", TEST[:-9], r"\(6, 2, 2\) .*toy"),
    ],
)
def test_garbage_is_recognized_and_removed(server, folder, file, content, match):
    server.plans[f"/toy/{file}"] = [answering(200, content)]
    check_refusal(server, folder, match)


# Check sums


def test_a_known_checksum_is_verified_the_first_time(server, folder):
    known = {file: hashlib.sha256(content).hexdigest() for file, content in TOY.items()}
    wrong = known | {"toy.xml": "0" * 64}
    with pytest.raises(ChecksumError, match=f"toy.xml.*{known['toy.xml']}.*{'0' * 64}"):
        fetch("toy", mirror=server.address, sha256=wrong)
    check_nothing(folder, "toy/toy-test.arff", "toy/toy-train.arff")
    check_toy(fetch("toy", mirror=server.address, sha256=known), folder)


@pytest.mark.parametrize("sha256", [{"toy.arff": "0" * 64}, {"toy.xml": "0" * 63}, {"toy.xml": 5}])
def test_checksums_that_would_check_nothing(server, folder, sha256):
    (file, digest), *_ = sha256.items()
    with pytest.raises(ValueError, match=f"sha256.*toy-train.arff.*{digest}.*'{file}'"):
        fetch("toy", mirror=server.address, sha256=sha256)
    assert not server.asked


# Names and addresses


@pytest.mark.parametrize("name", ["nothing", "../toy", "/etc/toy", "toy/toy", "", None, 5])
def test_names_that_are_not_known(folder, name):
    with pytest.raises(ValueError, match=f"name.*'bibtex', .*{re.escape(repr(name))}"):
        fetch(name)
    assert not folder.exists()


def test_sets_without_a_source(folder):
    match = f"yahoo_arts .* LAMDA .*{re.escape(str(folder))}.*yahoo_"
    with pytest.raises(FetchError, match=match):
        fetch("yahoo_arts")
    folder.mkdir(parents=True)
    (folder / "yahoo_arts.npz").touch()
    assert fetch("yahoo_arts") == folder / "yahoo_arts.npz"


@pytest.mark.parametrize(
    "mirror",
    [
        *("file:///srv", "ftp://host", "host/path", "", "http://", "http:///srv", "https://h/ a"),
        *("https://user:word@host", "https://host/?a=b", "https://host/#a", "https://h\u00f6st"),
        *(
            "https://host:port",
            "https://host:99999",
            "https://[::1",
            "http://host",
            "http://localhost.host",
            5,
            b"https://host",
            ["https://host"],
        ),
    ],
)
def test_mirrors_that_are_refused(folder, mirror):
    with pytest.raises(ValueError, match="mirror.*'https://.*'http://localhost.*got"):
        fetch("toy", mirror=mirror)
    assert not folder.exists()


def test_the_registry():
    assert not set(HOMES) & set(ELSEWHERE)
    for name, public in HOMES.items():
        assert re.fullmatch(r"[a-z0-9_]+", name)
        if name != "toy":
            stems = {f"{name}.arff"}, {f"{name}.arff", f"{name}.xml"}
            split = {f"{name}-train.arff", f"{name}-test.arff", f"{name}.xml"}
            assert set(public.files) in (*stems, split)
            assert len(set(public.files.values())) == len(public.files)
            assert all(re.fullmatch(r"https://[!-~]+", url) for url in public.files.values())
