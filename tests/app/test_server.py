"""The service as a process."""

from __future__ import annotations

import socket

import pytest

from nearlabel.app.server import bound_socket


def has_six():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_answers_are_sent_at_once(host):
    """Without TCP_NODELAY the second part of a response would wait for 40 ms."""
    if ":" in host and not has_six():
        pytest.skip("this machine has no IPv6")
    with bound_socket(host, 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
