"""Packages whose public names load on first use.

The names are ordinary imports in the package's stub, ``__init__.pyi``, which type checkers,
editors and the package itself read; so each is written once. This module runs with every
``import nearlabel``, so it imports nothing that takes time to load.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def public_names(file: str) -> dict[str, str]:
    """Read the names in a package's stub, in order, each with the module it comes from.

    Parameters
    ----------
    file : str
        The package's ``__init__.py``. The stub beside it holds lines of the form ``from MODULE
        import NAME as NAME``, or ``from PACKAGE import *`` for a subpackage with a stub of its own.
    """
    modules: dict[str, str] = {}
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123
        imports = [line.split() for line in stub if line.startswith("from ")]
    for _, module, _, name, *_ in imports:
        if name == "*":
            package = module.rpartition(".")[2]
            modules.update(public_names(file.replace("__init__.py", f"{package}/__init__.py")))
        else:
            modules[name] = module
    return modules


def lazy_attributes(package: str, file: str) -> tuple[Callable[[str], object], list[str]]:
    """Create the `__getattr__` and the `__all__` of a package from its stub."""
    names = public_names(file)

    def load(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if names[name] == package:  # a subpackage
            return import_module(f"{package}.{name}")
        attribute: object = getattr(import_module(names[name]), name)
        return attribute

    return load, sorted(names)
