"""Downloads: complete or not at all, of bounded size, by https only."""

from __future__ import annotations

import hashlib
import re
import time
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, BinaryIO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from nearlabel.common.files import replacing
from nearlabel.common.messages import one_line
from nearlabel.datasets.text_lines import Progress

_RETRIES = 3  # if the connection breaks, with pauses of 1, 2 and 3 seconds
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 2**31  # bytes; no public set is near it


class FetchError(OSError):
    """A data set could not be fetched."""


class ChecksumError(ValueError):
    """A download does not have the checksum that was given for it."""


def is_secure(address: str) -> bool:
    """Whether an address uses https, or http on this machine itself."""
    try:
        parts = urlsplit(address)
        is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        return bool(parts.hostname) and parts.port != 0 and (parts.scheme == "https" or is_local)
    except ValueError:  # a port that is not a number
        return False


class SecureRedirects(HTTPRedirectHandler):
    """Follows no redirection away from https."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request of the next address, or an error."""
        if not is_secure(newurl) or urlsplit(newurl).scheme not in ("https", req.type):
            fp.close()
            raise FetchError(f"it redirects to {newurl!r}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(address: str, path: Path, progress: Progress | None) -> None:
    """Download a file, with retries if the connection breaks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    request = Request(address, headers={"User-Agent": "nearlabel"})
    opener = build_opener(SecureRedirects)
    for pause in range(1, _RETRIES + 2):
        try:
            with opener.open(request, timeout=_TIMEOUT) as response, replacing(path) as file:
                _receive(response, file, progress)
            return
        except (OSError, HTTPException) as error:
            reason: object = error
            if isinstance(error, HTTPError):
                error.close()
                reason = f"HTTP {error.code} {error.reason}"
            if isinstance(error, HTTPError | FetchError) or pause > _RETRIES:
                raise FetchError(one_line(f"{address}: {reason}")) from None
            time.sleep(pause)


def _receive(response: HTTPResponse, file: BinaryIO, progress: Progress | None) -> None:
    """Write a response to a file, if it is one of bounded length, and complete."""
    if response.status != 200:
        raise FetchError(f"HTTP {response.status} {response.reason}")
    if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise FetchError(f"the response is encoded as {encoding!r}, which was not requested")
    total, size = None, 0  # a response in chunks tells its end, not its length
    if not response.chunked:
        length = response.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length):
            raise FetchError("the server does not send the length of the file")
        total = int(length)
    while True:
        if max(size, total or 0) > _LARGEST:
            size = max(size, total or 0)
            raise FetchError(f"{size:,} bytes exceed the limit of {_LARGEST:,}")
        if not (block := response.read(2**16)):
            break
        size += len(block)
        file.write(block)
        if progress is not None:
            progress(size, total)
    if total not in (None, size):
        raise ConnectionError(f"received only {size:,} of {total:,} bytes")


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
