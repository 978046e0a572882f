"""Packages that only some installations have, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra_module(name: str, what: str, extra: str) -> Any:
    """Import a module of an extra of this package.

    Parameters
    ----------
    name : str
        The module, "PIL.Image" for example.
    what : str
        What needs it and by which name users know it: "GridMoments needs Pillow".
    extra : str
        The extra of nearlabel that installs it.

    Raises
    ------
    ModuleNotFoundError
        One sentence with the command, where it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        raise ModuleNotFoundError(
            f"{what}{broken}: pip install 'nearlabel[{extra}]'", name=error.name
        ) from None
