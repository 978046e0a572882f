"""Metrics of requests in the Prometheus format."""

from __future__ import annotations

import time
from http import HTTPMethod
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearlabel.app.request_logs import log_request
from nearlabel.app.served import Served


class RequestMetrics:
    """What is measured about requests and the collection."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._registry = CollectorRegistry()
        own: Any = {"namespace": "nearlabel", "registry": self._registry}
        labels = ("method", "route", "status")
        self.requests = Counter("requests", "Requests answered.", labels, **own)
        seconds = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
        self.seconds = Histogram(
            "request_seconds", "Time to answer.", ("route",), buckets=seconds, **own
        )
        self.under_way = Gauge("requests_under_way", "Requests being answered.", **own)
        self._items = Gauge("items", "Items in the collection.", ("state",), **own)
        self._tags = Gauge("tags", "Tags in the collection.", **own)
        self._changes = Gauge("changes", "Number of the last change.", **own)
        ProcessCollector(registry=self._registry)

    def response(self) -> Response:
        """All metrics with their current values."""
        totals = self._served.totals()
        for state in ("tagged", "untagged", "missing"):
            self._items.labels(state).set(totals.counts[state])
        self._tags.set(totals.counts["tags"])
        self._changes.set(totals.change)
        content = generate_latest(self._registry)
        return Response(content, headers={"content-type": CONTENT_TYPE_LATEST})


class Measured:
    """Counts and logs the requests of an application, including refused ones."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status, size = time.perf_counter(), 500, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, send_counted)
        finally:
            self._metrics.under_way.dec()
            seconds = time.perf_counter() - begin
            # By the pattern of the address: one time series for all items, none for unknown ones.
            route = getattr(scope.get("route"), "path", "none")
            if scope["path"].startswith("/static/"):
                route = "/static"
            method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
            self._metrics.requests.labels(method, route, status).inc()
            self._metrics.seconds.labels(route).observe(seconds)
            log_request(scope, status, size, seconds)
