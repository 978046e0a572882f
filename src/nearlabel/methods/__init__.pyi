"""The registry of methods: one line makes a method public, in the order of tables.

Its public name, the choices of the command line, the estimator checks, the tests of explanations
and of model files, and the tables of comparisons follow from that line.
"""

# ruff: noqa: I001
from nearlabel.methods.mlknn import MLkNN as MLkNN
from nearlabel.methods.lamlknn import LAMLkNN as LAMLkNN
from nearlabel.methods.dmlknn import DMLkNN as DMLkNN
from nearlabel.methods.mallowsknn import MallowskNN as MallowskNN
from nearlabel.methods.positiveknn import PositivekNN as PositivekNN
from nearlabel.methods.brknn import BRkNN as BRkNN
from nearlabel.methods.mlcwknn import MLCWkNN as MLCWkNN
from nearlabel.methods.iblr import IBLR as IBLR
from nearlabel.methods.balancedknn import BalancedkNN as BalancedkNN
