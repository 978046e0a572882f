"""Tokens, and the cookies derived from them."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from nearlabel.app.logins import SECONDS, cookie_name, cookie_of, is_logged_in

TOKEN = "a-token-of-many-letters"
FAR = 2**32  # the year 2106
COOKIE = "nearlabel"  # of a service without a port in its address


@pytest.fixture(scope="module")
def client(module_serving):
    return module_serving("vectors", token=TOKEN)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """A wrong token is answered late."""
    clock = SimpleNamespace(sleep=lambda _: None, time=time.time)
    monkeypatch.setattr("nearlabel.app.page_routes.time", clock)


def login(client, token=TOKEN, **form):
    client.cookies.clear()
    return client.post("/login", data={"token": token, **form})


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_the_token_in_a_header(scheme):
    assert is_logged_in({"authorization": f"{scheme}{TOKEN}"}, TOKEN)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN}\0",
        "Bearer \xff\xfe",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer{TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
    ],
)
def test_headers_without_the_token(given):
    assert not is_logged_in({"authorization": given}, TOKEN)
    cookie = f"{COOKIE}={cookie_of(TOKEN, FAR)}"
    if given.lower().startswith("bearer "):  # a wrong one is not ignored
        assert not is_logged_in({"authorization": given, "cookie": cookie}, TOKEN)


@pytest.mark.parametrize(
    "others",
    ["{}", "a=1; {}", "{}; b=2", "a[b]={{'x': 1}}; {}", 'x="a\\"; {}', "=; ;; {}", "\xff=\xff;{}"],
)
def test_our_cookie_is_found_among_others(others):
    cookie = others.format(f"{COOKIE}={cookie_of(TOKEN, FAR)}")
    assert is_logged_in({"cookie": cookie}, TOKEN)


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        ".",
        str(FAR),
        f"{FAR}.",
        f"{FAR}.{'0' * 64}",
        cookie_of("another-token-of-many", FAR),
        cookie_of(TOKEN, 10**9),
        cookie_of(TOKEN, 0),
        cookie_of(TOKEN, FAR).replace(str(FAR), str(FAR + 1)),
        f"0{cookie_of(TOKEN, FAR)}",
        cookie_of(TOKEN, FAR)[:-1],
        f"{cookie_of(TOKEN, FAR)}0",
        cookie_of(TOKEN, FAR).upper(),
        f'"{cookie_of(TOKEN, FAR)}"',
        f"{'9' * 5000}.x",
        '"' + "\\" * 60_000 + '"',  # slow in the standard library
        "²³.x",
        "\xff\x00",
        TOKEN,
    ],
)
def test_forged_and_expired_cookies(cookie):
    assert not is_logged_in({"cookie": f"{COOKIE}={cookie}"}, TOKEN)
    assert not is_logged_in({"cookie": f"other={cookie_of(TOKEN, FAR)}"}, TOKEN)


def test_a_cookie_expires(monkeypatch):
    headers = {"cookie": f"{COOKIE}={cookie_of(TOKEN, FAR)}"}
    for now, is_let_in in [(FAR - 1, True), (FAR, False), (FAR + 1, False)]:
        monkeypatch.setattr("nearlabel.app.logins.time", SimpleNamespace(time=lambda now=now: now))
        assert is_logged_in(headers, TOKEN) == is_let_in


def test_a_login_gives_a_cookie_for_a_month(client):
    answer = login(client, next="/review?tag=sea")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/review?tag=sea"
    cookie = answer.headers["set-cookie"]
    for part in (f"{COOKIE}=", f"Max-Age={SECONDS}", "HttpOnly", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert "Secure" not in cookie
    assert TOKEN not in cookie
    assert client.get("/api/items").status_code == 200
    client.cookies.clear()
    assert client.get("/api/items").status_code == 401


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8350", "nearlabel-8350"),
        ("[::1]:8351", "nearlabel-8351"),
        ("photos.example.org", "nearlabel"),
        ("[::1]", "nearlabel"),
        ("localhost:", "nearlabel"),
        ("localhost:²", "nearlabel"),
        ("", "nearlabel"),
    ],
)
def test_the_name_of_the_cookie_has_the_port(host, name):
    assert cookie_name({"host": host}) == name


def test_services_at_two_ports_of_a_host_leave_each_other_logged_in(client):
    other = cookie_of("a-token-of-another-service", FAR)
    answer = client.post("http://127.0.0.1:8350/login", data={"token": TOKEN})
    ours, _, _ = answer.headers["set-cookie"].partition(";")
    headers = {"cookie": f"nearlabel-8351={other}; {ours}; nearlabel={other}"}
    client.cookies.clear()
    for port, status in [(8350, 200), (8351, 401), (80, 401)]:
        asked = client.get(f"http://127.0.0.1:{port}/api/items", headers=headers)
        assert asked.status_code == status


def test_a_login_over_https_gives_a_cookie_that_stays_there(client):
    answer = client.post("https://127.0.0.1/login", data={"token": f" {TOKEN}\n"})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("token", ["x", TOKEN[:-1], f"{TOKEN}\0", "é" * 30, "a" * 5000])
def test_a_wrong_token_gives_none(client, token):
    answer = login(client, token)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-type"].startswith("text/html")
    assert TOKEN not in answer.text


def test_forms_without_a_token(client):
    assert client.code("POST", "/login") == (422, "invalid")
    assert client.code("POST", "/login", data={"token": "a" * 5001}) == (422, "invalid")
    assert client.code("POST", "/login", data={"token": TOKEN, "next": "/" * 2001})[0] == 422


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " //evil.example",
        "http://evil.example",
        "HTTPS:evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil.example",
        "@evil.example",
        "/\r\nSet-Cookie: a=b",
        "/\0/evil.example",
    ],
)
def test_a_login_does_not_redirect_elsewhere(client, target):
    answer = login(client, next=target)
    assert answer.status_code == 303
    place = answer.headers["location"]
    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))
    assert place.isprintable()
    assert "\\" not in place
    assert answer.headers.get_list("set-cookie")[0].startswith(f"{COOKIE}=")
    assert len(answer.headers.get_list("set-cookie")) == 1


def test_the_page_shows_the_target_only_as_text(client):
    answer = client.get("/login", params={"next": '"><script>alert(1)</script>'})
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text


def test_there_is_no_login_without_a_token(module_serving):
    client = module_serving("vectors")
    assert client.get("/login?next=//evil.example").headers["location"] == "/"
    answer = client.post("/login", data={"token": "x", "next": "//evil.example"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
