"""Logs of the service: one JSON object per line, or short lines for a terminal.

Logs contain no secrets: no headers, no bodies, and nothing after the ? of an address.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from starlette.types import Scope

from nearlabel.common.messages import one_line

_FIELDS = ("method", "path", "status", "bytes", "ms", "client")
_log = logging.getLogger("nearlabel.requests")


def log_request(scope: Scope, status: int, size: int, seconds: float) -> None:
    """Log a request that was answered."""
    if not _log.isEnabledFor(logging.INFO):
        return
    method, path, client = scope["method"][:20], scope["path"][:500], scope.get("client")
    values = method, path, status, size, round(1000 * seconds, 1), client[0] if client else None
    line = one_line(f"{method} {path} {status} {1000 * seconds:.0f} ms", 600)
    _log.info("%s", line, extra=dict(zip(_FIELDS, values, strict=True)))


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": "request" if hasattr(record, "status") else record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logs(form: str) -> None:
    """Send the logs of the service to standard error, as "json" or "text", or "auto" to choose.

    On a terminal, "auto" shows warnings and errors only.
    """
    plain = form == "text" or (form == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    short = logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S")
    handler.setFormatter(short if plain else JsonLines())
    for name in ("nearlabel.requests", "nearlabel.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)  # messages of libraries
    logging.getLogger("nearlabel.service").setLevel(logging.INFO)
    if form != "auto" or not plain:
        _log.setLevel(logging.INFO)


def tell_end() -> None:
    """Log that the service has ended."""
    logging.getLogger("nearlabel.service").info("the service has stopped; all changes are stored")
