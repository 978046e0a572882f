"""The same learner on a cluster: graphs, fits and answers by blocks of rows, on Dask.

The public names stand in the stub beside this file and load on first use.
"""

from nearlabel.common.lazy import lazy_attributes

__getattr__, __all__ = lazy_attributes(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
