"""The published neighbor methods, one a file."""

from nearlabel.methods.mlknn import MLkNN

__all__ = ["MLkNN"]
