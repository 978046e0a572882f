"""The registry of baselines: one line makes a method public, in the order of tables.

Its public name, the choices of the command line, the estimator checks, the tests of model files and
the tables of comparisons follow from that line.
"""

from nearlabel.baselines.ranksvm import RankSVM as RankSVM
