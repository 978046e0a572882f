"""Public data sets, downloaded into the data folder."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import canonical_csr
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError
from nearlabel.datasets.dataset import Dataset, checked
from nearlabel.datasets.downloads import Checksums, FetchError, download, is_secure, sha256_of
from nearlabel.datasets.loading import load, save
from nearlabel.datasets.public_sets import ELSEWHERE, HOMES
from nearlabel.datasets.source_files import data_folders
from nearlabel.datasets.text_lines import Progress


def fetch(
    name: str,
    *,
    folder: str | Path | None = None,
    mirror: str | None = None,
    sha256: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a public data set to the data folder, where `load` finds it by name.

    A set that is already there is not downloaded again. The original files stay in the subfolder
    ``downloads``, beside ``checksums.json``. Their servers publish no checksums, so the first
    download is trusted and later ones must match it, unless `sha256` gives the checksums.

    Parameters
    ----------
    name : str
        One of the names in ``nearlabel.datasets.public_sets.HOMES``.
    folder : str or Path, optional
        The first of `data_folders` by default; created if missing.
    mirror : str, optional
        Address of a server that has the original files as ``MIRROR/NAME/FILE``, used in place of
        the usual servers: https, or http on this machine itself. Sets that only OpenML has do not
        use it.
    sha256 : mapping of str to str, optional
        Known checksums by file name: ``{"yeast.xml": "7b…"}``. Only sources that have one of these
        files are used.
    progress : callable, optional
        Called with the number of bytes received of a file and its length, or None if unknown. Not
        for OpenML.

    Returns
    -------
    Path
        Of ``NAME.npz``.

    Raises
    ------
    FetchError
        If no source delivered the set; complete files are kept for the next call.
    ChecksumError
        If a file differs from the first download or from `sha256`.

    Warns
    -----
    UserWarning
        If the first source failed and a later one delivered the set.

    Examples
    --------
    >>> from nearlabel.datasets.public_sets import HOMES
    >>> sorted(HOMES)[:4]
    ['bibtex', 'birds', 'cal500', 'corel16k001']
    """
    if name not in (*HOMES, *ELSEWHERE):
        message = f"name must be one of {', '.join(map(repr, HOMES))}; got {name!r}"
        raise ArgumentError(message + did_you_mean(str(name), HOMES), "name")
    folder = data_folders()[0] if folder is None else Path(folder)
    path, downloads = folder / f"{name}.npz", folder / "downloads"
    if path.is_file():
        return path
    if name in ELSEWHERE:
        raise FetchError(
            f"{name} cannot be fetched: no public server has it in a supported format; "
            f"{ELSEWHERE[name]}; load finds it in {folder} as {path.name}"
        )
    public, failures = HOMES[name], []
    files = public.files if mirror is None else _at_mirror(mirror, name)
    sources = [list(files)] if files else []  # each a list of the names of its checksums
    sources += [[f"openml-{public.openml}"]] if public.openml is not None else []
    if sha256 is not None:  # another source would not be checked against it
        known = [file for source in sources for file in source]
        for file, digest in sha256.items():
            if file not in known or not re.fullmatch("(?i)[0-9a-f]{64}", str(digest)):
                raise ValueError(
                    f"sha256 must map one or more of {', '.join(known)} to 64 hexadecimal digits; "
                    f"got {digest!r} for {file!r}"
                )
        sources = [source for source in sources if sha256.keys() & {*source}]
    for source in sources:
        checksums = Checksums(downloads / "checksums.json", name, sha256 or {})
        try:
            if source == list(files):
                data = _from_files(name, files, downloads / name, checksums, progress)
            else:
                data = _from_openml(name, downloads / "openml", checksums)
        except FetchError as error:
            failures.append(str(error))
            continue
        if failures:
            warnings.warn(
                f"{name} comes from OpenML's data set {public.openml}, which has no split into "
                f"train and test: {'; '.join(failures)}",
                stacklevel=2,
            )
        checksums.write()
        save(data, path)
        return path
    raise FetchError(f"{name} could not be fetched: {'; '.join(failures)}")


def _at_mirror(mirror: str, name: str) -> dict[str, str]:
    """The addresses of the files at a mirror, or a ValueError if it cannot be trusted."""
    is_plain = isinstance(mirror, str) and re.fullmatch("[!-~]+", mirror)
    if not is_plain or re.search("[@?#]", mirror) or not is_secure(mirror):
        wanted = (
            "an address such as 'https://host/path', or 'http://localhost/path' on this machine"
        )
        raise ArgumentError(f"mirror must be {wanted}; got {mirror!r}", "mirror")
    return {file: f"{mirror.rstrip('/')}/{name}/{file}" for file in HOMES[name].files}


def _from_files(
    name: str,
    files: Mapping[str, str],
    folder: Path,
    checksums: Checksums,
    progress: Progress | None,
) -> Dataset:
    paths = [folder / file for file in files]
    for path in paths:
        key, address = f"{name}/{path.name}", files[path.name]
        if path.is_file() and not checksums.agree(key, sha256_of(path)):
            path.unlink()  # it was damaged in the meantime
        if not path.is_file():
            download(address, path, progress)
        sha256, size = sha256_of(path), path.stat().st_size
        if not checksums.agree(key, sha256):
            path.unlink()
        checksums.record(key, address, sha256, size)
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
            f"{files[wrong.name]}: the download cannot be read as {wrong.name} and was "
            f"removed; it begins with {begin!r} ({error})"
        ) from None


def _from_openml(name: str, folder: Path, checksums: Checksums) -> Dataset:
    from sklearn.datasets import fetch_openml

    number, address = HOMES[name].openml, f"https://www.openml.org/d/{HOMES[name].openml}"
    try:
        with warnings.catch_warnings(action="ignore"):  # real problems raise an error
            bunch = fetch_openml(
                data_id=number, as_frame=False, data_home=folder, parser="liac-arff"
            )
        known = np.isin(bunch.target, ["TRUE", "FALSE"])
        if not known.all():
            raise ValueError(f"labels must be TRUE or FALSE; got {bunch.target[~known][0]!r}")
        columns = ~np.isin(bunch.feature_names, HOMES[name].ignore)
        names = np.array(bunch.target_names), np.array(bunch.feature_names)[columns]
        Y = sparse.csr_array(bunch.target == "TRUE")
        data = _checked(Dataset(bunch.data[:, columns], Y, *names), name)
    except Exception as error:  # scikit-learn may raise anything
        reason = " ".join(str(error).split())
        raise FetchError(f"{address}: {type(error).__name__}: {reason}") from None
    # The checksum is that of the numbers, whatever their types in memory.
    X, Y = canonical_csr(data.X), data.Y
    places = [X.indices, X.indptr, X.shape, Y.indices, Y.indptr, Y.shape]
    numbers = [np.asarray(X.data, "<f8"), *(np.asarray(part, "<i8") for part in places)]
    content = b"".join(part.tobytes() for part in numbers)
    sha256 = hashlib.sha256(content).hexdigest()
    checksums.record(f"{name}/openml-{number}", address, sha256, len(content))
    return data


def _checked(data: Dataset, name: str) -> Dataset:
    """The data set if it has the expected shape, or a ValueError."""
    data, shape = checked(data), HOMES[name].shape
    if (*data.X.shape, data.Y.shape[1]) != shape:
        raise ValueError(f"{data!r} does not have the size {shape} of {name}")
    return data
