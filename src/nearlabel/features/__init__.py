"""Transformers that turn pictures and texts into vectors, with scikit-learn's interface.

The public names are listed in the stub next to this file and load on first use.
"""

from nearlabel.common.lazy import lazy_attributes

__getattr__, __all__ = lazy_attributes(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
