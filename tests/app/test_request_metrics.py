"""Metrics for Prometheus: requests by route, and sizes of the collection."""

from __future__ import annotations

from unittest import mock

import pytest
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture(scope="module")
def client(module_serving):
    return module_serving("vectors")


def figures(client):
    """All metrics by name and labels."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (one.name, *sorted(one.labels.items())): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def requests(client, **labels):
    return figures(client).get(("nearlabel_requests_total", *sorted(labels.items())), 0)


def test_requests_are_counted_by_the_pattern_of_their_address(client):
    labels = {"method": "GET", "route": "/api/items/{id}", "status": "200"}
    before = requests(client, **labels)
    for id in (1, 2, 3):
        client.get(f"/api/items/{id}?q=secret-word")
    assert requests(client, **labels) == before + 3
    assert requests(client, **labels | {"status": "404"}) == 0
    client.get("/api/items/99")
    assert requests(client, **labels | {"status": "404"}) == 1
    assert "secret-word" not in client.get("/metrics").text


@pytest.mark.parametrize(
    ("method", "address", "headers", "status"),
    [
        ("GET", "/none/such", {}, "404"),
        ("GET", "/api/health", {"host": "evil.example"}, "403"),
        ("POST", "/api/undo", {"origin": "null"}, "403"),
        ("POST", "/api/undo", {"content-length": "9" * 18}, "413"),
    ],
)
def test_refused_requests_are_counted_without_their_address(
    client, method, address, headers, status
):
    labels = {"method": method, "route": "none", "status": status}
    before = requests(client, **labels)
    client.request(method, address, headers=headers)
    assert requests(client, **labels) == before + 1


def test_clients_cannot_create_time_series(client):
    client.get("/metrics")
    before = len(figures(client))
    for number in range(5):
        client.get(f"/nonsense/{number}")
        client.request(f"METHOD{number}", "/api/items")
        client.get(f"/static/{number}")
        client.get("/api/items", params={f"q{number}": number})
        client.get("/api/health", headers={"host": f"{number}.example"})
    again = len(figures(client))
    assert again < before + 60
    for number in range(5, 10):
        client.get(f"/nonsense/{number}")
        client.request(f"METHOD{number}", "/api/items")
        client.get(f"/static/{number}")
    assert len(figures(client)) == again


def test_times_are_counted(client):
    client.get("/api/health")
    found = figures(client)
    route = ("route", "/api/health")
    count = found["nearlabel_request_seconds_count", route]
    assert count >= 1
    assert found["nearlabel_request_seconds_bucket", ("le", "+Inf"), route] == count
    assert found["nearlabel_request_seconds_sum", route] > 0


def test_requests_under_way_end_also_with_an_error(client):
    def fail():
        raise KeyError

    with mock.patch.object(client.app.state.served, "totals", fail):
        assert client.get("/api/tags").status_code == 500
    assert figures(client)["nearlabel_requests_under_way",] == 1  # this one
    assert requests(client, method="GET", route="/api/tags", status="500") == 1


def test_metrics_follow_the_collection(client):
    before = figures(client)
    assert before["nearlabel_items", ("state", "tagged")] == 29
    assert before["nearlabel_items", ("state", "untagged")] == 11
    assert before["nearlabel_tags",] == 3
    client.post("/api/items/40/tags", json={"tags": ["new"]})
    after = figures(client)
    assert after["nearlabel_items", ("state", "tagged")] == 30
    assert after["nearlabel_tags",] == 4
    assert after["nearlabel_changes",] == before["nearlabel_changes",] + 1
    assert after["process_resident_memory_bytes",] > 0
