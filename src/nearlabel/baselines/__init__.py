"""Methods that the papers compare with. The stub beside this file is their registry."""

from nearlabel.common.lazy import lazy_attributes

__getattr__, __all__ = lazy_attributes(__name__, __file__)
