"""Downloads by pooch: complete or not at all, of bounded size, by https only.

The sha256 of the first download is recorded; later ones must match it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from nearlabel.common.files import replacing
from nearlabel.common.messages import one_line
from nearlabel.datasets.text_lines import Progress

_RETRIES = 3  # if the connection breaks, with pauses of 1, 2 and 3 seconds
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 2**31  # bytes; no public set is near it
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class FetchError(OSError):
    """A data set could not be fetched from one of its sources, or from any."""


class ChecksumError(ValueError):
    """A download does not match the first one, or the record of checksums is damaged."""


def is_secure(address: str) -> bool:
    """Whether an address uses https, or http on this machine itself."""
    try:
        parts = urlsplit(address)
        is_local = parts.scheme == "http" and parts.hostname in _THIS_MACHINE
        return bool(parts.hostname) and parts.port != 0 and (parts.scheme == "https" or is_local)
    except ValueError:  # a port that is not a number
        return False


def download(address: str, path: Path, progress: Progress | None) -> None:
    """Download a file if it does not exist, with retries if the connection breaks."""
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
        registry={path.name: None},  # the caller checks sha256: a changed file is not retried
        urls={path.name: address},
        retry_if_failed=_RETRIES,
    )
    level = pooch.get_logger().level
    pooch.get_logger().setLevel("WARNING")  # by default it reports every file
    try:
        files.fetch(path.name, downloader=one_try)
    except (OSError, ValueError) as error:
        raise FetchError(one_line(f"{address}: {error}")) from None
    finally:
        pooch.get_logger().setLevel(level)


class _Part:
    """A file that is being downloaded: responses are checked, bytes are counted."""

    def __init__(self, file: IO[bytes], progress: Progress | None) -> None:
        self._file, self._progress = file, progress
        self._done = 0
        self._total: int | None = None  # if the server sends it

    def check_answer(self, response: Any, **_: Any) -> None:
        """Raise an error for a response that is not a file, or a redirection away from https."""
        problem, headers = None, response.headers
        if response.is_redirect:
            target = urljoin(response.url, headers["Location"])
            schemes = ("https", urlsplit(response.url).scheme)
            if not is_secure(target) or urlsplit(target).scheme not in schemes:
                problem = f"it redirects to {target!r}, which is not https"
        elif response.status_code != 200:
            problem = f"HTTP {response.status_code} {response.reason}"
        elif (encoding := headers.get("Content-Encoding", "identity")) != "identity":
            problem = f"the response is encoded as {encoding!r}, which was not requested"
        elif headers.get("Transfer-Encoding") != "chunked":
            if re.fullmatch("[0-9]{1,18}", headers.get("Content-Length", "")):
                self._total = int(headers["Content-Length"])
                problem = _too_large(self._total)
            else:
                problem = "the server does not send the length of the file"
        if problem is not None:
            response.close()
            raise FetchError(problem)

    def write(self, block: bytes) -> None:
        """Write a block of the file."""
        self._done += len(block)
        if problem := _too_large(self._done):
            raise FetchError(problem)
        self._file.write(block)
        if self._progress is not None:
            self._progress(self._done, self._total)

    def flush(self) -> None:
        """Do nothing; pooch calls this after every block."""

    def check_whole(self) -> None:
        """Raise an error if the file is truncated, which older versions of urllib3 ignore."""
        if self._total not in (None, self._done):
            raise ValueError(f"received only {self._done:,} of {self._total:,} bytes")


def _too_large(size: int) -> str | None:
    return f"{size:,} bytes exceed the limit of {_LARGEST:,}" if size > _LARGEST else None


class Records:
    """The sha256 of downloads, by name; new ones are saved by `write`."""

    def __init__(self, path: Path, name: str, given: Mapping[str, str]) -> None:
        self._path = path
        self._given = {f"{name}/{file}": one.lower() for file, one in given.items()}
        self._known: dict[str, dict[str, Any]] = {}
        self._new: dict[str, dict[str, Any]] = {}
        try:
            if path.is_file():
                self._known = dict(json.loads(path.read_text("utf-8")))
            if not all(re.fullmatch("[0-9a-f]{64}", one["sha256"]) for one in self._known.values()):
                raise ValueError("a sha256 must have 64 digits")
        except (ValueError, KeyError, TypeError) as error:
            raise ChecksumError(
                f"{path} is damaged ({type(error).__name__}: {error}); repair it, or remove it to "
                "record the checksums again"
            ) from None

    def agree(self, name: str, sha256: str) -> bool:
        """Whether a file has the expected checksum, or none is known."""
        expected = self._given.get(name) or self._known.get(name, {}).get("sha256")
        return expected in (None, sha256)

    def check(self, name: str, address: str, sha256: str, size: int) -> None:
        """Raise an error if a file's checksum is not the expected one; record a new one."""
        if not self.agree(name, sha256):
            found = f"the sha256 of {name} is {sha256}"
            if name in self._given:
                raise ChecksumError(f"{address}: {found}; expected {self._given[name]}")
            raise ChecksumError(
                f"{address} has changed: {found} and was {self._known[name]['sha256']} the first "
                f"time; to accept the new one, remove the entry {name!r} from {self._path}"
            )
        self._new[name] = {"address": address, "sha256": sha256, "size": size}

    def write(self) -> None:
        """Write the records, with the new ones."""
        with replacing(self._path) as file:
            file.write(json.dumps(self._known | self._new, indent=1, sort_keys=True).encode())


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
