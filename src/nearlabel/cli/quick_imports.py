"""A quick start: scikit-learn without imports that we do not need."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _PutOff(ModuleType):
    """Takes the place of a module until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_scikit_learn(*, scaling: bool = False) -> None:
    """Import scikit-learn, and postpone SciPy's statistics until they are needed.

    These and pandas take more than half of the second that ``import sklearn`` needs. pandas is
    optional for scikit-learn and hidden during the import. Afterwards, imports work as usual.
    """
    if "sklearn" in sys.modules:
        return
    possible: dict[str, Any] = {"scipy.stats": _PutOff("scipy.stats"), "pandas": None}
    stand_ins = {name: one for name, one in possible.items() if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        for part in ("base", "preprocessing", "pipeline") if scaling else ("base",):
            import_module(f"sklearn.{part}")
    finally:
        for name, one in stand_ins.items():
            if sys.modules.get(name, stand_ins) is one:
                del sys.modules[name]
