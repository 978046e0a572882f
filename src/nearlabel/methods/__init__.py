"""The published methods, one per file. The stub beside this file registers them."""

from nearlabel.common.lazy import lazy_attributes

__getattr__, __all__ = lazy_attributes(__name__, __file__)
