"""Downloads that can be resumed, in bounded size, from the web only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from nearlabel.datasets.text_lines import Progress

_PAUSES = (0.0, 1.0, 2.0, 4.0)  # seconds before each try of a file whose connection breaks off
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 2**31  # bytes; no set here is near it
_BLOCK = 2**16


class FetchError(OSError):
    """A home did not give the data set, or none did."""


class _BrokenOffError(Exception):
    """The connection ended before the file did."""


class Download:
    """A file on its way: what came of it is in ``FILE.part``, beside where that is from."""

    def __init__(self, address: str, path: Path, progress: Progress | None) -> None:
        self._address, self._path, self._progress = address, path, progress
        self._part = path.with_name(f"{path.name}.part")
        self._origin = path.with_name(f"{path.name}.part.origin")

    def run(self) -> None:
        """Get the file, in several tries where the connection breaks off."""
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                self._try()
            except _BrokenOffError as error:
                came = str(error)
                continue
            self._part.replace(self._path)
            self._origin.unlink(missing_ok=True)
            return
        tries, again = len(_PAUSES), "resumes" if self._left_over()[0] else "starts anew"
        raise self._error(f"the connection broke off {tries} times, {came}; calling again {again}")

    def _error(self, message: str) -> FetchError:
        return FetchError(f"{self._address}: {message}")

    def _left_over(self) -> tuple[int, str]:
        """The length of a part that can be resumed and its version; 0 where there is none."""
        if not (self._part.is_file() and self._origin.is_file()):
            return 0, ""
        address, _, version = self._origin.read_text("latin-1").partition("\n")
        resumable = version and address == self._address
        return (self._part.stat().st_size, version) if resumable else (0, "")

    def _discard(self) -> None:
        self._part.unlink(missing_ok=True)
        self._origin.unlink(missing_ok=True)

    def _try(self) -> None:
        start, version = self._left_over()
        headers = {"Accept-Encoding": "identity", "User-Agent": "nearlabel"}
        if start:  # an answer 200 where the server has another version by now
            headers |= {"Range": f"bytes={start}-", "If-Range": version}
        request = Request(self._address, headers=headers)
        try:
            response = build_opener(_WebOnly()).open(request, None, _TIMEOUT)
        except HTTPError as error:
            error.close()
            if error.code == 416 and start:
                self._discard()
                raise _BrokenOffError("nothing came") from None
            reason = " ".join(str(error.reason).split())
            raise self._error(f"HTTP {error.code} {reason}") from None
        except URLError as error:
            raise self._error(str(error.reason)) from None
        except (OSError, HTTPException):
            raise _BrokenOffError("no answer came") from None
        with response:
            try:
                self._keep(response, start, version)
            except FetchError:
                self._discard()
                raise

    def _keep(self, response: HTTPResponse, start: int, version: str) -> None:
        """Write what comes behind the part, or in its place where it is the whole file."""
        done = start if response.status == 206 else 0
        total = None if response.length is None else done + response.length
        told = response.headers
        etag = told.get("ETag", "W/")  # a weak one does not vouch for the bytes
        now = told.get("Last-Modified", "") if etag.startswith("W/") else etag
        rest = f"bytes {done}-{(total or 0) - 1}/{total}"
        if done and (told.get("Content-Range") != rest or now not in ("", version)):
            self._discard()
            raise _BrokenOffError("nothing came that continues the part")
        if response.status != 200 and not done:
            raise self._error(f"HTTP {response.status} {response.reason}")
        if (encoding := told.get("Content-Encoding", "identity")) != "identity":
            raise self._error(f"it came encoded as {encoding!r}, which was not asked for")
        if total is None and not response.chunked:
            raise self._error("the server does not tell the length of the file")
        limit = _LARGEST if total is None else total
        if limit > _LARGEST:
            raise self._error(f"{limit:,} bytes are more than the limit of {_LARGEST:,}")
        with self._part.open("ab" if done else "wb") as file:
            if not done:
                self._origin.write_text(f"{self._address}\n{now}", "latin-1")
            try:
                for block in _blocks(response):
                    done += len(block)
                    if done > limit:
                        which = "allowed" if total is None else "announced"
                        raise self._error(f"more than the {limit:,} bytes {which} came")
                    file.write(block)
                    if self._progress is not None:
                        self._progress(done, total)
            except _BrokenOffError:
                of = "" if total is None else f"of {total:,} "
                raise _BrokenOffError(f"{done:,} {of}bytes came") from None


class _WebOnly(HTTPRedirectHandler):
    """Follows redirections to http and https only, and from https to https only."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Refuse the redirection, or follow it."""
        if urlsplit(newurl).scheme not in ("https", req.type):
            msg = f"{msg} - Redirection to url {newurl!r} is not allowed"
            raise HTTPError(newurl, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    """What comes, and a byte more if more comes than was announced: http.client drops the rest."""
    left = response.length
    body: Any = response if left is None else response.fp
    try:
        while left != 0 and (block := body.read(_BLOCK if left is None else min(_BLOCK, left))):
            left = None if left is None else left - len(block)
            yield block
    except (OSError, HTTPException):
        raise _BrokenOffError from None
    if left:
        raise _BrokenOffError
    if left == 0 and response.will_close:
        with suppress(OSError):
            if more := body.read(1):
                yield more
