"""The published neighbor methods, one a file."""

from nearlabel.methods.iblr import IBLR
from nearlabel.methods.mlknn import MLkNN

__all__ = ["IBLR", "MLkNN"]
