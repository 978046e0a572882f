"""The published neighbor methods, one a file."""

from nearlabel.methods.brknn import BRkNN
from nearlabel.methods.dmlknn import DMLkNN
from nearlabel.methods.iblr import IBLR
from nearlabel.methods.lamlknn import LAMLkNN
from nearlabel.methods.mallowsknn import CalibratedRanking, MallowskNN
from nearlabel.methods.mlcwknn import MLCWkNN
from nearlabel.methods.mlknn import MLkNN
from nearlabel.methods.positiveknn import PositivekNN

__all__ = [
    "IBLR",
    "BRkNN",
    "CalibratedRanking",
    "DMLkNN",
    "LAMLkNN",
    "MLCWkNN",
    "MLkNN",
    "MallowskNN",
    "PositivekNN",
]
