"""Logs: one line per request, without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from nearlabel.app.request_logs import log_request, set_up_logs

TOKEN = "a-token-of-many-letters"
NAMES = ("nearlabel.requests", "nearlabel.service", "uvicorn.error")


@pytest.fixture(scope="module")
def client(module_serving):
    return module_serving("vectors", token=TOKEN)


@pytest.fixture(autouse=True)
def as_before():
    """Restore loggers after each test."""
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def logged(monkeypatch):
    """The log on standard error in a given format."""

    def set_up(form, stream=None):
        written = io.StringIO() if stream is None else stream
        monkeypatch.setattr(sys, "stderr", written)
        set_up_logs(form)
        return written

    return set_up


def lines(written):
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_request_is_one_line_of_json(client, logged):
    written = logged("json")
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = client.get("/api/items/1", headers=headers)
    (line,) = lines(written)
    assert line.pop("time").endswith("+00:00")
    assert line.pop("ms") > 0
    assert line == {
        "level": "info",
        "message": "request",
        "method": "GET",
        "path": "/api/items/1",
        "status": 200,
        "bytes": len(answer.content),
        "client": "testclient",
    }


def test_nothing_secret_is_logged(client, logged):
    written = logged("json")
    secret = "secret-word"
    for headers in (
        {"authorization": f"Bearer {TOKEN}"},
        {"authorization": f"Bearer {secret}"},
        {"cookie": f"nearlabel={secret}"},
        {"host": f"{secret}.example"},
        {"origin": f"http://{secret}"},
        {"content-length": secret},
    ):
        for method in ("GET", "POST"):
            client.request(method, f"/api/items/1?token={TOKEN}&q={secret}", headers=headers)
    headers = {"authorization": f"Bearer {TOKEN}"}
    client.post("/api/items/1/tags", json={"tags": [secret, "\0"]}, headers=headers)
    client.post("/login", data={"token": TOKEN, "next": f"/{secret}"})
    assert len(lines(written)) == 14
    assert TOKEN not in written.getvalue()
    assert secret not in written.getvalue()


@pytest.mark.parametrize("form", ["json", "text"])
def test_errors_are_logged_once_with_their_traceback(client, logged, form, monkeypatch):
    def fail():
        raise KeyError("a reason")

    monkeypatch.setattr(client.app.state.served, "totals", fail)
    written = logged(form)
    answer = client.get("/api/tags?q=secret-word", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 500
    assert "a reason" not in answer.text
    said = written.getvalue()
    assert said.count("KeyError: 'a reason'") == 1
    assert TOKEN not in said
    assert "secret-word" not in said
    if form == "json":
        failed, request = lines(written)
        assert (failed["level"], failed["message"]) == ("error", "a request failed")
        assert failed["path"] == "/api/tags"
        assert failed["traceback"].endswith("KeyError: 'a reason'")
        assert request["status"] == 500


def test_plain_lines_are_short_and_escape_control_characters(client, logged):
    written = logged("text")
    client.get("/%1b[2J%0a\u202e", headers={"authorization": f"Bearer {TOKEN}"})
    (line,) = written.getvalue().splitlines()
    assert line.isprintable()
    assert "GET /?[2J?? 404" in line
    assert line.endswith(" ms")


def test_long_addresses_are_truncated(client, logged):
    written = logged("json")
    client.request("M" * 3000, "/" + "x" * 30_000)
    (line,) = lines(written)
    assert (len(line["path"]), len(line["method"])) == (500, 20)


def test_on_a_terminal_only_problems_are_logged(client, logged, monkeypatch):
    written = logged("auto", Terminal())
    client.get("/api/health")
    assert written.getvalue() == ""
    logging.getLogger("nearlabel.service").error("it is broken")
    assert written.getvalue().endswith(" it is broken\n")


def test_elsewhere_all_requests_are_logged(client, logged):
    written = logged("auto")
    client.get("/api/health")
    assert lines(written)[0]["path"] == "/api/health"


def test_a_request_without_a_client_is_logged(client, logged):
    written = logged("json")
    log_request({"method": "GET", "path": "/", "client": None}, 200, 0, 0.1)
    (line,) = lines(written)
    assert (line["client"], line["message"], line["status"]) == (None, "request", 200)


@pytest.mark.parametrize("form", ["json", "text"])
def test_lines_without_requests(client, logged, form):
    written = logged(form)
    logging.getLogger("nearlabel.service").warning("a %s", "word")
    if form == "json":
        (line,) = lines(written)
        assert (line["level"], line["message"]) == ("warning", "a word")
    else:
        assert written.getvalue().endswith(" a word\n")
