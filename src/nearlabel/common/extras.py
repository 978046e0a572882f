"""Optional dependencies, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation.

    It is right wherever nearlabel came from, a checkout or a file too: pip keeps the version that
    is installed, and asks an index for the packages of the extra alone.
    """
    return f"pip install 'nearlabel[{extra}]'"


def extra_module(name: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Parameters
    ----------
    name : str
        The module, "PIL.Image" for example.
    what : str
        What needs the package, by the name that users know: "GridMoments needs Pillow".
    extra : str
        The extra of nearlabel that installs it.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message is one sentence with the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        raise ModuleNotFoundError(
            f"{what}{broken}: {install_command(extra)}", name=error.name
        ) from None
