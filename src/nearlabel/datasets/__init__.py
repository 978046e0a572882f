"""Data sets: from the data folder, from files in the usual formats, and generated ones."""

from nearlabel.datasets.dataset import Dataset, Description, describe
from nearlabel.datasets.downloads import ChecksumError, FetchError
from nearlabel.datasets.fetching import fetch
from nearlabel.datasets.generators import make_local_labels
from nearlabel.datasets.loading import load, save
from nearlabel.datasets.made_collection import MadeCollection as Collection
from nearlabel.datasets.made_collection import make_collection
from nearlabel.datasets.painted_scenes import paint_scenes
from nearlabel.datasets.picture_sets import PictureSet, load_pictures
from nearlabel.datasets.source_files import available, data_folders
from nearlabel.datasets.text_lines import DataError

__all__ = [
    "ChecksumError",
    "Collection",
    "DataError",
    "Dataset",
    "Description",
    "FetchError",
    "PictureSet",
    "available",
    "data_folders",
    "describe",
    "fetch",
    "load",
    "load_pictures",
    "make_collection",
    "make_local_labels",
    "paint_scenes",
    "save",
]
