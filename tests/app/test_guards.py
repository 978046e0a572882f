"""Checks of host, origin, token and size of a request."""

from __future__ import annotations

import asyncio

import pytest

from nearlabel.app.guards import HEADERS, Guard, check_host, check_site
from nearlabel.app.responses import Refusal
from nearlabel.app.service_settings import ServiceSettings

TOKEN = "a-token-of-many-letters"
CHANGE = {"json": {"tags": ["light"]}}  # the item already has it


@pytest.fixture(scope="module")
def client(module_serving):
    return module_serving("vectors", names=frozenset({"photos.example"}), most_bytes=5000)


@pytest.fixture(scope="module")
def guarded(module_serving):
    return module_serving("vectors", host="0.0.0.0", token=TOKEN)


# Host names.


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8350",
        "127.9.9.9",
        "localhost",
        "LOCALHOST:1",
        "[::1]:8350",
        "photos.example",
        "Photos.Example:443",
    ],
)
def test_names_by_which_the_service_is_called(client, host):
    assert client.get("/api/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "photos.example.",
        "a.photos.example",
        "127.0.0.1@evil.example",
        "192.168.1.2",
        "8.8.8.8:80",
        "[::2]",
        "[::1",
        "0x7f000001",
        "127.1",
        "2130706433",
        "a" * 5000,
        "évil.example".encode().decode("latin-1"),
        "127.0.0.1, evil.example",
        "%31%32%37.0.0.1",
    ],
)
def test_names_by_which_it_is_not_called(client, host):
    headers = {b"host": host.encode("latin-1")}
    assert client.code("GET", "/api/health", headers=headers) == (403, "host_refused")


def test_a_service_for_other_machines_is_called_by_any_address(guarded):
    for host in ("192.168.1.2", "[fe80::1]:8350", "8.8.8.8", "127.0.0.1", "0.0.0.0"):
        assert guarded.get("/api/health", headers={"host": host}).status_code == 200
    assert guarded.code("GET", "/api/health", headers={"host": "a.example"})[0] == 403


def test_the_name_that_it_listens_on_is_its_own(tmp_path):
    settings = ServiceSettings(tmp_path, host="Photos.lan", token=TOKEN)
    check_host({"host": "photos.lan:80"}, settings)
    with pytest.raises(Refusal, match="--allow-host"):
        check_host({"host": "photos"}, settings)
    with pytest.raises(Refusal, match="--allow-host"):
        check_host({}, settings)


def test_a_login_is_small(guarded):
    for length in (2**14 + 1, 2**40):
        headers = {"content-length": str(length)}
        assert guarded.code("POST", "/login", headers=headers) == (413, "too_large")
    parts = (b"&" * 2**13 for _ in range(3))
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert guarded.code("POST", "/login", content=parts, headers=form) == (413, "too_large")


# Origins.


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "https://127.0.0.1", "HTTP://127.0.0.1"])
def test_our_own_page_may_change_something(client, origin):
    assert client.post("/api/items/1/tags", headers={"origin": origin}, **CHANGE).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1:8350",
        "http://127.0.0.1.evil.example",
        "http://localhost",
        "http://evil.example/127.0.0.1",
        "http://evil.example@127.0.0.1:1",
        "127.0.0.1",
        "http:127.0.0.1",
        "http://[",
        "file://",
        "chrome-extension://abcdef",
    ],
)
def test_other_pages_may_change_nothing(client, origin):
    for method, address in [("POST", "/api/items/1/tags"), ("POST", "/login"), ("DELETE", "/x")]:
        refused = client.code(method, address, headers={"origin": origin})
        assert refused == (403, "origin_refused")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_a_browser_marks_as_cross_site_are_refused(client, site):
    headers = {"sec-fetch-site": site}
    refused = (403, "origin_refused")
    assert client.code("POST", "/api/items/1/tags", headers=headers) == refused
    headers["origin"] = "http://127.0.0.1"
    assert client.code("POST", "/api/items/1/tags", headers=headers) == refused
    for mode in ("no-cors", "cors", "websocket"):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
        assert client.code("GET", "/api/items", headers=headers) == refused


def test_links_from_other_sites_may_be_followed(client):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/api/items", headers=headers).status_code == 200
    assert client.code("POST", "/api/items/1/tags", headers=headers) == (403, "origin_refused")


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_our_own_page_and_programs_may_read_and_change(client, site):
    headers = {"sec-fetch-site": site} if site else {}
    assert client.get("/api/items", headers=headers).status_code == 200
    assert client.post("/api/items/1/tags", headers=headers, **CHANGE).status_code == 200


def test_the_origin_is_not_checked_for_reads():
    check_site("GET", {"origin": "http://evil.example"})  # no answer may be read there anyway
    with pytest.raises(Refusal):
        check_site("QUERY", {"origin": "http://evil.example"})


# Tokens.


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "/api/items"),
        ("GET", "/api/openapi.json"),
        ("GET", "/metrics"),
        ("GET", "/thumbnails/1"),
        ("GET", "/previews/1"),
        ("GET", "/none"),
        ("GET", "/api//health"),
        ("GET", "//api/health"),
        ("POST", "/api/undo"),
        ("DELETE", "/api/items/1"),
        ("OPTIONS", "/api/items"),
        ("BREW", "/api/items"),
    ],
)
def test_without_the_token_nothing_is_revealed(guarded, method, address):
    answer = guarded.request(method, address)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "token_needed"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("address", ["/login", "/static/none", "/api/health"])
def test_what_needs_no_token(guarded, address):
    assert guarded.get(address).status_code != 401


def test_a_browser_without_the_token_is_sent_to_the_login(guarded):
    headers = {"accept": "text/html,*/*"}
    answer = guarded.get("/items/3?x=/a&y=b%20c", headers=headers)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fitems%2F3%3Fx%3D%2Fa%26y%3Db%2520c"
    assert guarded.get("/", headers=headers).headers["location"] == "/login?next=%2F"
    assert guarded.get("/api/items", headers=headers).status_code == 401


def test_the_token_does_not_allow_cross_site_requests(guarded):
    headers = {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}
    assert guarded.code("POST", "/api/undo", headers=headers) == (403, "origin_refused")
    headers = {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}
    assert guarded.code("GET", "/api/items", headers=headers) == (403, "host_refused")


# What leaves.


@pytest.mark.parametrize(
    ("method", "address", "status", "headers"),
    [
        ("GET", "/api/health", 200, {}),
        ("GET", "/api/items/99", 404, {}),
        ("GET", "/none", 404, {}),
        ("PATCH", "/api/items", 405, {}),
        ("POST", "/api/tag", 415, {}),
        ("POST", "/api/decisions", 422, {}),
        ("GET", "/api/health", 403, {"host": "evil.example"}),
        ("POST", "/api/undo", 403, {"origin": "null"}),
        ("POST", "/api/undo", 400, {"content-length": "x"}),
        ("POST", "/api/undo", 413, {"content-length": "5001"}),
        ("GET", "/login", 303, {}),
        ("GET", "/metrics", 200, {}),
        ("GET", "/static/none.js", 404, {}),
    ],
)
def test_every_response_has_security_headers(client, method, address, status, headers):
    answer = client.request(method, address, headers=headers)
    assert answer.status_code == status
    for name, value in HEADERS.items():
        assert answer.headers.get_list(name) == [value]
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "server" not in answer.headers
    assert not {name for name in answer.headers if name.startswith("access-control")}


def test_nothing_may_be_loaded_or_framed_from_elsewhere():
    policy = dict(part.split(" ", 1) for part in HEADERS["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in str(policy)
    assert {*policy["script-src"].split()} == {"'self'"}


def test_unexpected_errors_have_security_headers_too(client, monkeypatch):
    def fail():
        raise KeyError("secret")

    monkeypatch.setattr(client.app.state.served, "totals", fail)
    answer = client.get("/api/tags")
    assert answer.status_code == 500
    assert HEADERS.items() <= dict(answer.headers).items()


# Size and speed.


@pytest.mark.parametrize("length", ["x", "-1", "+5", "1e3", "٣", "1,1", "0x10", "5 5", ""])
def test_invalid_content_lengths(client, length):
    headers = {b"content-length": length.encode()}
    assert client.code("POST", "/api/undo", headers=headers)[0] == 400


@pytest.mark.parametrize("length", ["5001", "9" * 18, "9" * 5000, "0005001"])
def test_a_body_declared_too_large_is_not_read(client, length):
    answer = client.post("/api/undo", headers={"content-length": length})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert "at most" in answer.json()["error"]["message"]


def test_a_body_of_undeclared_length_is_limited_too(client):
    def parts(n):
        return (b" " * 1000 for _ in range(n))

    headers = {"content-type": "application/json"}
    for address in ("/api/tag", "/api/items", "/api/decisions", "/api/items/1/tags"):
        assert client.code("POST", address, content=parts(6), headers=headers)[0] == 413
        assert client.code("POST", address, content=parts(5), headers=headers)[0] == 422
    form = {"content-type": "multipart/form-data; boundary=b"}
    assert client.code("POST", "/api/items", content=parts(6), headers=form)[0] == 413


def answer_of(app, messages, **settings):
    """The response of a guarded application to messages sent at given times."""
    sent = []

    async def receive():
        seconds, message = next(messages)
        await asyncio.sleep(seconds)
        return message

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    guard = Guard(app, ServiceSettings("uploads", **settings))
    asyncio.run(guard(scope, receive, send))
    return sent


async def reading(scope, receive, send):
    """An application that reads the whole body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})


def body(seconds, size, more=True):
    return seconds, {"type": "http.request", "body": bytes(size), "more_body": more}


def test_a_large_body_has_longer():
    parts = iter([body(0, 50_000), body(0.2, 50_000), body(0.2, 1, more=False)])
    assert answer_of(reading, parts, seconds=0.1)[0]["status"] == 200


def test_an_error_after_the_answer_has_begun_ends_the_connection():
    async def failing(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise KeyError("late")

    with pytest.raises(KeyError, match="late"):
        answer_of(failing, iter(()))


def test_other_kinds_of_connections_are_left_unanswered():
    async def receive_or_send(*_):
        raise AssertionError

    guard = Guard(receive_or_send, ServiceSettings("uploads"))
    asyncio.run(guard({"type": "websocket"}, receive_or_send, receive_or_send))
