"""Multi-label learning by nearest neighbors.

The public names are in the stub beside this file and load on first use, so that
``import nearlabel`` costs next to nothing.
"""

from nearlabel.common.lazy import lazy_attributes

__version__ = "1.0.0"

__getattr__, __all__ = lazy_attributes(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return __all__
