"""Learning on a Dask cluster: graphs, fits and predictions by blocks of rows.

The public names are listed in the stub next to this file and loaded on first use.
"""

from nearlabel.common.lazy import lazy_attributes

__getattr__, __all__ = lazy_attributes(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
