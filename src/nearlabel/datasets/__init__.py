"""Data sets: of the data folder, of files in every usual form, and generated ones."""

from nearlabel.datasets.dataset import Dataset, Description, describe
from nearlabel.datasets.folder import data_folders
from nearlabel.datasets.generators import make_local_labels
from nearlabel.datasets.loading import available, load, save
from nearlabel.datasets.text import DataError

__all__ = [
    "DataError",
    "Dataset",
    "Description",
    "available",
    "data_folders",
    "describe",
    "load",
    "make_local_labels",
    "save",
]
