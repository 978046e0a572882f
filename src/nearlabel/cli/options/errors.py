"""Errors that name the option that was wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OptionError(ValueError):
    """A value of an option that the library refuses."""


@contextmanager
def naming(**options: str) -> Iterator[None]:
    """Let errors about parameters of the library name the options that set them.

    Parameters
    ----------
    **options : str
        The option of each parameter that can be refused within, such as ``split="--split"``.
        Messages of the library begin with the argument: "split must be …" or "split='loo' …".
        What they say after it stays as it is, since it may quote a file.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        first, _, rest = str(error).partition(" ")
        parameter, _, value = first.partition("=")
        hinted = [option for name, option in options.items() if f"{name}=" in rest]
        if parameter in options:
            first = f"{options[parameter]} {value}".strip()
        elif not hinted:
            raise
        more = f" ({', '.join(hinted)})" if hinted else ""
        raise OptionError(f"{first} {rest}{more}") from error
