"""Pictures with labels: a folder ``pictures`` with the table ``labels.csv`` beside it."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.extras import extra_module
from nearlabel.common.files import replacing
from nearlabel.common.messages import did_you_mean, first_twice, shown, some
from nearlabel.datasets.csv_tables import write_rows
from nearlabel.datasets.loading import load
from nearlabel.datasets.source_files import data_folders
from nearlabel.datasets.text_lines import DataError

_TABLE, _FOLDER = "labels.csv", "pictures"


@dataclass(frozen=True, eq=False)
class PictureSet:
    """Pictures and their labels.

    Attributes
    ----------
    pictures : ndarray of uint8, shape (n, height, width, 3), or list of Path
        Red, green and blue, or the files; `nl.features` takes both.
    Y : csr_array of int8, shape (n, q)
    label_names : ndarray of str, shape (q,)
    names : list of str
        The name of each picture: its file without the folder.
    """

    pictures: Array | Sequence[Path]
    Y: Csr
    label_names: Array
    names: list[str]

    def __len__(self) -> int:
        return len(self.pictures)

    def __repr__(self) -> str:
        n, q = self.Y.shape
        return f"PictureSet({n} pictures, {q} labels, {self.Y.nnz / n:.2f} labels per picture)"

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ``pictures/*`` and ``labels.csv``, which `load_pictures` reads.

        Parameters
        ----------
        folder : path
            Created if it does not exist.
        overwrite : bool, default=False
            Whether to overwrite files of the same names. If False, an existing file is an error,
            and nothing is written. Other files in the folder are not touched.
        """
        if len(self.names) != len(self.pictures):
            wanted = f"names must have one entry per picture, {len(self.pictures)}"
            raise ValueError(f"{wanted}; got {len(self.names)}")
        for name in self.names:
            if name in ("", ".", "..") or Path(name).name != name:
                raise ValueError(f"names must be file names without a folder; got {name!r}")
        if (twice := first_twice(self.names)) is not None:
            raise ValueError(f"names must be unique; got {twice!r} twice")
        target, table = Path(folder) / _FOLDER, Path(folder) / _TABLE
        paths = [target / name for name in self.names]
        in_the_way = [path for path in (table, *paths) if os.path.lexists(path)]
        if in_the_way and not overwrite:
            others = len(in_the_way) - 1
            exist = f"and {others} more already exist" if others else "already exists"
            raise FileExistsError(f"{in_the_way[0]} {exist}; overwrite=True replaces them")
        target.mkdir(parents=True, exist_ok=True)
        for picture, path in zip(self.pictures, paths, strict=True):
            _write(picture, path)
        rows = zip(self.names, *self.Y.toarray().T.tolist(), strict=True)
        write_rows(table, [("image", *self.label_names.tolist()), *rows])


def load_pictures(source: str | os.PathLike[str]) -> PictureSet:
    """Read a set of labeled pictures: by its name in the data folder, or from its folder.

    The folder contains ``pictures/`` and ``labels.csv``. In this table the column ``image`` names a
    file in ``pictures/``, with or without its suffix, and every other column is a label, with 0 and
    1. Pictures that are not in the table are left out. The files are listed, not opened.

    Parameters
    ----------
    source : str or path
        The folder; or the name of one in a folder of ``NEARLABEL_DATA``.

    Returns
    -------
    PictureSet
        In the order of the table, its ``pictures`` as paths.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be the name or the path of a picture set; got {source!r}")
    folder = _folder_of(source)
    if folder is None and Path(source).is_dir():
        raise FileNotFoundError(f"{source} is not a picture set: it needs {_TABLE} and {_FOLDER}/")
    if folder is None:
        looked = ", ".join(map(str, data_folders()))
        raise FileNotFoundError(
            f"no picture set {str(source)!r}: there is no such folder, and none of that name in "
            f"{looked}{did_you_mean(Path(source).name, list(available_pictures()))}"
        )
    table = load(folder / _TABLE, format="csv", labels=("*",), id="image", features=())
    if table.label_names is None or table.row_names is None:
        raise DataError(str(folder / _TABLE), 1, "expected one column per label besides 'image'")
    files = sorted(path.name for path in (folder / _FOLDER).iterdir() if path.is_file())
    names = _files_of(table.row_names.tolist(), files, folder)
    return PictureSet(
        [folder / _FOLDER / name for name in names], table.Y, table.label_names, names
    )


def available_pictures() -> dict[str, Path]:
    """The picture sets of the data folders: name and folder; the first of a name is used."""
    sets: dict[str, Path] = {}
    for folder in data_folders():
        for table in sorted(folder.glob(f"*/{_TABLE}")):
            if (table.parent / _FOLDER).is_dir():
                sets.setdefault(table.parent.name, table.parent)
    return sets


def is_picture_set(source: str) -> bool:
    """Whether a name or a path refers to a picture set."""
    return _folder_of(source) is not None


def _folder_of(source: str | os.PathLike[str]) -> Path | None:
    """The folder of the picture set that a name or a path refers to, if there is one."""
    is_name = isinstance(source, str) and re.fullmatch(r"(?!\.)[\w.-]+", source) is not None
    for folder in [*(data_folders() if is_name else ()), Path()]:
        place: Path = folder / source
        if (place / _TABLE).is_file() and (place / _FOLDER).is_dir():
            return place
    return None


def _files_of(images: Sequence[str], files: Sequence[str], folder: Path) -> list[str]:
    """The file of each image in a table."""
    known: dict[str, list[str]] = {}
    for name in files:
        known.setdefault(Path(name).stem, []).append(name)
    known |= {name: [name] for name in files}
    names = [name for image in images for name in known.get(image, ())]
    several = next((image for image in images if len(known.get(image, ())) > 1), None)
    if missing := [image for image in images if image not in known]:
        problem = f"no such picture in {_FOLDER}/: {some(missing)}"
    elif several is not None:
        problem = f"image {shown(several)} is ambiguous: {some(known[several])}"
    elif (twice := first_twice(names)) is not None:
        problem = f"image {shown(twice)} occurs twice"
    else:
        return names
    raise DataError(str(folder / _TABLE), None, problem)


def _write(picture: Array | str | os.PathLike[str], path: Path) -> None:
    """Write an array as a JPEG file, or copy a file."""
    with replacing(path) as file:
        if isinstance(picture, str | os.PathLike):
            with Path(picture).open("rb") as source:
                shutil.copyfileobj(source, file)
            return
        images = extra_module("PIL.Image", "writing pictures needs Pillow", "pictures")
        encoded = io.BytesIO()
        images.fromarray(picture).save(encoded, "JPEG", quality=90)
        file.write(encoded.getvalue())
