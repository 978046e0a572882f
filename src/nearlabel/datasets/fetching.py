"""Public data sets, downloaded into the data folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.downloads import ChecksumError, FetchError, download, is_secure, sha256_of
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
    ``downloads``. Their servers publish no checksums: https is trusted, and `sha256` if given.

    Parameters
    ----------
    name : str
        One of the names in ``nearlabel.datasets.public_sets.HOMES``.
    folder : str or Path, optional
        The first of `data_folders` by default; created if missing.
    mirror : str, optional
        Address of a server that has the original files as ``MIRROR/NAME/FILE``, used in place of
        the usual servers: https, or http on this machine itself.
    sha256 : mapping of str to str, optional
        Known checksums by file name: ``{"yeast.xml": "7b…"}``.
    progress : callable, optional
        Called with the number of bytes received of a file and its length, or None if unknown.

    Returns
    -------
    Path
        Of ``NAME.npz``.

    Raises
    ------
    FetchError
        If a server did not deliver the set; complete files are kept for the next call.
    ChecksumError
        If a file differs from `sha256`.

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
    path, downloads = folder / f"{name}.npz", folder / "downloads" / name
    if path.is_file():
        return path
    if name in ELSEWHERE:
        raise FetchError(
            f"{name} cannot be fetched: no public server has it in a supported format; "
            f"{ELSEWHERE[name]}; load finds it in {folder} as {path.name}"
        )
    files, given = HOMES[name].files if mirror is None else _at_mirror(mirror, name), sha256 or {}
    for file, digest in given.items():
        if file not in files or not re.fullmatch("(?i)[0-9a-f]{64}", str(digest)):
            raise ValueError(
                f"sha256 must map one or more of {', '.join(files)} to 64 hexadecimal digits; "
                f"got {digest!r} for {file!r}"
            )
    for file, address in files.items():
        target = downloads / file
        if not target.is_file():
            download(address, target, progress)
        if file in given and (digest := sha256_of(target)) != given[file].lower():
            target.unlink()
            raise ChecksumError(f"{address}: its sha256 is {digest}; expected {given[file]}")
    save(_read(name, downloads, files), path)
    return path


def _at_mirror(mirror: str, name: str) -> dict[str, str]:
    """The addresses of the files at a mirror, or a ValueError if it cannot be trusted."""
    is_plain = isinstance(mirror, str) and re.fullmatch("[!-~]+", mirror)
    if not is_plain or re.search("[@?#]", mirror) or not is_secure(mirror):
        wanted = (
            "an address such as 'https://host/path', or 'http://localhost/path' on this machine"
        )
        raise ArgumentError(f"mirror must be {wanted}; got {mirror!r}", "mirror")
    return {file: f"{mirror.rstrip('/')}/{name}/{file}" for file in HOMES[name].files}


def _read(name: str, folder: Path, files: Mapping[str, str]) -> Dataset:
    """The data set in downloads, which are removed if they are something else."""
    public, paths = HOMES[name], [folder / file for file in files]
    try:
        data = load(folder / name, ignore=public.ignore, nominal=public.nominal)
        if (*data.X.shape, data.Y.shape[1]) != public.shape:
            raise ValueError(f"{data!r} does not have the size {public.shape} of {name}")
        return data
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
