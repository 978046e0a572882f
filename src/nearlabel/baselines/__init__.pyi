"""The registry of baselines: one line makes a method public, in the order of tables.

Its public name, the choices of the command line, the estimator checks, the tests of model files and
the tables of comparisons follow from that line.
"""

# ruff: noqa: I001
from nearlabel.baselines.adaboostmh import AdaBoostMH as AdaBoostMH
from nearlabel.baselines.adtboostmh import ADTBoostMH as ADTBoostMH
from nearlabel.baselines.ranksvm import RankSVM as RankSVM
from nearlabel.baselines.c45tree import C45Tree as C45Tree
from nearlabel.baselines.pmm import PMM as PMM
