"""Data sets: of the data folder, and generated ones with planted structure."""

from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.folder import data_folders, load
from nearlabel.datasets.generators import make_local_labels

__all__ = ["Dataset", "data_folders", "load", "make_local_labels"]
