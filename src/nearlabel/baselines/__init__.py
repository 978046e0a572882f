"""Methods that published neighbor methods are compared with, one a file."""

from nearlabel.baselines.balancedknn import BalancedkNN

__all__ = ["BalancedkNN"]
