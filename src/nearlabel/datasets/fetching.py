"""Public data sets, fetched from their public homes into the data folder."""

from __future__ import annotations

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from scipy import sparse

from nearlabel.arrays import canonical_csr
from nearlabel.datasets.dataset import Dataset, checked
from nearlabel.datasets.folder import data_folders
from nearlabel.datasets.homes import ELSEWHERE, HOMES, Files, OpenML
from nearlabel.persistence import replacing
from nearlabel.validation import check_choice

Progress = Callable[[int, int | None], None]

_PAUSES = (0.0, 1.0, 2.0, 4.0)  # seconds before each try of a file whose connection breaks off
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 2**31  # bytes; no set here is near it
_BLOCK = 2**16


class FetchError(OSError):
    """A home did not give the data set, or none did."""


class ChecksumError(ValueError):
    """What came is not what came the first time, or the record of that is damaged."""


class _BrokenOffError(Exception):
    """The connection ended before the file did."""


def fetch(
    name: str,
    *,
    folder: str | Path | None = None,
    mirror: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Get a public data set into the data folder, where `load` finds it by its name.

    What is there already is not fetched again. The sources stay in ``downloads`` in that folder,
    beside ``checksums.json``: what comes a second time must be what came the first time.

    Parameters
    ----------
    name : str
        One of the names in ``nearlabel.datasets.homes.HOMES``.
    folder : str or Path, optional
        The first of `data_folders` by default; made where it is missing.
    mirror : str, optional
        Address of a server that holds the sources as ``MIRROR/NAME/FILE``, to be asked in place of
        the homes that serve files. Sets that only OpenML has do not use it.
    progress : callable, optional
        Called with the bytes that came of a file and its length, or None where that is not told.
        Not for OpenML.

    Returns
    -------
    Path
        Of ``NAME.npz``.

    Raises
    ------
    FetchError
        If no home gave the set. A download that broke off is resumed by the next call.
    ChecksumError
        If something else came than the first time.

    Warns
    -----
    UserWarning
        If the first home failed and a later one gave the set.

    Examples
    --------
    >>> from nearlabel.datasets.homes import HOMES
    >>> sorted(HOMES)[:4]
    ['bibtex', 'birds', 'cal500', 'corel16k001']
    """
    from nearlabel.datasets.loading import save

    check_choice(name, "name", (*HOMES, *ELSEWHERE))
    folder = data_folders()[0] if folder is None else Path(folder)
    path, downloads = folder / f"{name}.npz", folder / "downloads"
    if path.is_file():
        return path
    if name in ELSEWHERE:
        raise FetchError(
            f"{name} cannot be fetched, no public home has it in a form that is read here: "
            f"{ELSEWHERE[name]}; put into {folder} as {path.name}, it is found by load"
        )
    homes, failures = [home.at(mirror, name) for home in HOMES[name].homes], []
    for home in homes:
        records = _Records(downloads / "checksums.json")
        try:
            if isinstance(home, Files):
                data = _from_files(name, home, downloads / name, records, progress)
            else:
                data = _from_openml(name, home, downloads / "openml", records)
        except FetchError as error:
            failures.append(str(error))
            continue
        if failures:
            warnings.warn(f"{name} comes from {home}: {'; '.join(failures)}", stacklevel=2)
        records.write()
        save(data, path)
        return path
    raise FetchError(f"{name} could not be fetched: {'; '.join(failures)}")


class _Records:
    """The sha256 of what was fetched, by its name; new ones are kept until `write`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        self._new: dict[str, dict[str, Any]] = {}
        try:
            if path.is_file():
                self._known = dict(json.loads(path.read_text("utf-8")))
            if not all(re.fullmatch("[0-9a-f]{64}", one["sha256"]) for one in self._known.values()):
                raise ValueError("a sha256 has 64 digits")
        except (ValueError, KeyError, TypeError) as error:
            raise ChecksumError(
                f"{path} is damaged ({type(error).__name__}: {error}); mend it, or remove it to "
                "have the check sums recorded anew"
            ) from None

    def agree(self, name: str, sha256: str) -> bool:
        return name not in self._known or self._known[name]["sha256"] == sha256

    def check(self, name: str, address: str, sha256: str, size: int) -> None:
        if not self.agree(name, sha256):
            raise ChecksumError(
                f"{address} has changed: the sha256 of {name} is {sha256} and was "
                f"{self._known[name]['sha256']} the first time; to accept the new one, remove the "
                f"entry {name!r} from {self._path}"
            )
        self._new[name] = {"address": address, "sha256": sha256, "size": size}

    def write(self) -> None:
        with replacing(self._path) as file:
            file.write(json.dumps(self._known | self._new, indent=1, sort_keys=True).encode())


def _from_files(
    name: str, home: Files, folder: Path, records: _Records, progress: Progress | None
) -> Dataset:
    from nearlabel.datasets.loading import load

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / file for file in home.addresses]
    for path in paths:
        key, address = f"{name}/{path.name}", home.addresses[path.name]
        if not (path.is_file() and records.agree(key, _sha256(path))):
            _Download(address, path, progress).run()
        sha256, size = _sha256(path), path.stat().st_size
        if not records.agree(key, sha256):
            path.unlink()
        records.check(key, address, sha256, size)
    try:
        public = HOMES[name]
        data = load(folder / name, ignore=public.ignore, nominal=public.nominal)
        return _checked(data, name)
    except ValueError as error:
        wrong = next((path for path in paths if str(path) == getattr(error, "file", "")), paths[0])
        with wrong.open("rb") as file:
            begin = file.read(60)
        for path in paths:
            path.unlink()
        raise FetchError(
            f"{home.addresses[wrong.name]}: what came is no {wrong.suffix[1:].upper()} file of "
            f"{name} that can be read, and was removed; it begins with {begin!r} ({error})"
        ) from None


def _from_openml(name: str, home: OpenML, folder: Path, records: _Records) -> Dataset:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings(action="ignore"):  # of what ends well, or in an error
            got = fetch_openml(
                data_id=home.data_id, as_frame=False, data_home=folder, parser="liac-arff"
            )
        known = np.isin(got.target, ["TRUE", "FALSE"])
        if not known.all():
            raise ValueError(f"a label is TRUE or FALSE; got {got.target[~known][0]!r}")
        kept = ~np.isin(got.feature_names, HOMES[name].ignore)
        names = np.array(got.target_names), np.array(got.feature_names)[kept]
        Y = sparse.csr_array(got.target == "TRUE")
        data = _checked(Dataset(got.data[:, kept], Y, *names), name)
    except Exception as error:  # whatever scikit-learn stumbles over, the next home is asked
        reason = " ".join(str(error).split())
        raise FetchError(f"{home.address}: {type(error).__name__}: {reason}") from None
    content = _content(data)
    sha256 = hashlib.sha256(content).hexdigest()
    records.check(f"{name}/openml-{home.data_id}", home.address, sha256, len(content))
    return data


def _content(data: Dataset) -> bytes:
    """The numbers of a data set as bytes, whatever types they have in memory."""
    X, Y = canonical_csr(data.X), data.Y
    places = [X.indices, X.indptr, X.shape, Y.indices, Y.indptr, Y.shape]
    wide = [np.asarray(X.data, "<f8"), *(np.asarray(part, "<i8") for part in places)]
    return b"".join(part.tobytes() for part in wide)


def _checked(data: Dataset, name: str) -> Dataset:
    """The data set if it has the form and the size that it should have, or a ValueError."""
    data, shape = checked(data), HOMES[name].shape
    if (*data.X.shape, data.Y.shape[1]) != shape:
        raise ValueError(f"{data!r} is not of the size {shape} of {name}")
    return data


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Download:
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
