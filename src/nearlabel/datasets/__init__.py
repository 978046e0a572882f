"""Data sets: generated ones with planted structure."""

from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.generators import make_local_labels

__all__ = ["Dataset", "make_local_labels"]
