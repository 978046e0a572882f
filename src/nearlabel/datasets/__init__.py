"""Data sets: of the data folder, of files in every usual form, and generated ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nearlabel.datasets.dataset import Dataset, Description, describe
from nearlabel.datasets.generators import make_local_labels
from nearlabel.datasets.loading import load, save
from nearlabel.datasets.made_collection import Collection, make_collection
from nearlabel.datasets.source_files import available, data_folders
from nearlabel.datasets.text_lines import DataError

if TYPE_CHECKING:
    from nearlabel.datasets.checksums import ChecksumError
    from nearlabel.datasets.fetching import fetch
    from nearlabel.datasets.http_download import FetchError

__all__ = [
    "ChecksumError",
    "Collection",
    "DataError",
    "Dataset",
    "Description",
    "FetchError",
    "available",
    "data_folders",
    "describe",
    "fetch",
    "load",
    "make_collection",
    "make_local_labels",
    "save",
]


def __getattr__(name: str) -> Any:
    """What fetches loads on first use: few need it, and the web is slow to import."""
    homes = {"ChecksumError": "checksums", "FetchError": "http_download", "fetch": "fetching"}
    if name in homes:
        return getattr(import_module(f"nearlabel.datasets.{homes[name]}"), name)
    raise AttributeError(f"module 'nearlabel.datasets' has no attribute {name!r}")
