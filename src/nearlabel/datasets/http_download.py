"""A file from the web, by pooch: all of it or nothing, of bounded size, by https only."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from nearlabel.common.messages import one_line
from nearlabel.datasets.text_lines import Progress

_RETRIES = 3  # of a file whose connection breaks off, with pauses of 1, 2 and 3 seconds
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 2**31  # bytes; no public set is near it
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class FetchError(OSError):
    """A home did not give the data set, or none did."""


def is_secure(address: str) -> bool:
    """Whether an address is of https, or of http on this machine itself."""
    try:
        parts = urlsplit(address)
        is_local = parts.scheme == "http" and parts.hostname in _THIS_MACHINE
        return bool(parts.hostname) and parts.port != 0 and (parts.scheme == "https" or is_local)
    except ValueError:  # a port that is not a number
        return False


def download(address: str, path: Path, progress: Progress | None) -> None:
    """Get a file that is not there, in several tries where the connection breaks off."""
    pooch = import_module("pooch")  # an extra, and slow to import

    def one_try(url: str, output: str, files: Any) -> None:
        with Path(output).open("wb") as file:
            part = _Part(file, progress)
            web = pooch.HTTPDownloader(
                chunk_size=2**16,
                timeout=_TIMEOUT,
                headers={"Accept-Encoding": "identity", "User-Agent": "nearlabel"},
                hooks={"response": part.check_answer},
            )
            web(url, part, files)
            part.check_whole()

    files = pooch.create(
        path.parent,
        base_url="",
        registry={path.name: None},  # the caller compares checksums: a changed file is not retried
        urls={path.name: address},
        retry_if_failed=_RETRIES,
    )
    level = pooch.get_logger().level
    pooch.get_logger().setLevel("WARNING")  # it would report every file
    try:
        files.fetch(path.name, downloader=one_try)
    except (OSError, ValueError) as error:
        raise FetchError(one_line(f"{address}: {error}")) from None
    finally:
        pooch.get_logger().setLevel(level)


class _Part:
    """What came of a file so far: answers are checked, bytes are counted."""

    def __init__(self, file: IO[bytes], progress: Progress | None) -> None:
        self._file, self._progress = file, progress
        self._done = 0
        self._total: int | None = None  # where the server tells it

    def check_answer(self, response: Any, **_: Any) -> None:
        """Refuse an answer that is not a file, and redirections away from https."""
        problem, told = None, response.headers
        if response.is_redirect:
            target = urljoin(response.url, told["Location"])
            schemes = ("https", urlsplit(response.url).scheme)
            if not is_secure(target) or urlsplit(target).scheme not in schemes:
                problem = f"a redirection to {target!r} is refused: it is not https"
        elif response.status_code != 200:
            problem = f"HTTP {response.status_code} {response.reason}"
        elif (encoding := told.get("Content-Encoding", "identity")) != "identity":
            problem = f"it came encoded as {encoding!r}, which was not requested"
        elif told.get("Transfer-Encoding") != "chunked":
            if re.fullmatch("[0-9]{1,18}", told.get("Content-Length", "")):
                self._total = int(told["Content-Length"])
                problem = _too_large(self._total)
            else:
                problem = "the server does not send the length of the file"
        if problem is not None:
            response.close()
            raise FetchError(problem)

    def write(self, block: bytes) -> None:
        """Take up what came."""
        self._done += len(block)
        if problem := _too_large(self._done):
            raise FetchError(problem)
        self._file.write(block)
        if self._progress is not None:
            self._progress(self._done, self._total)

    def flush(self) -> None:
        """Leave it to the file; pooch calls this after every block."""

    def check_whole(self) -> None:
        """Refuse a file that was cut off, which older versions of urllib3 do not report."""
        if self._total not in (None, self._done):
            raise ValueError(f"{self._done:,} of {self._total:,} bytes came")


def _too_large(size: int) -> str | None:
    return f"{size:,} bytes are more than the limit of {_LARGEST:,}" if size > _LARGEST else None
