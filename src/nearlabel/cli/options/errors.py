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
        The message of an `ArgumentError` begins with the argument, "split must be …" or
        "split='loo' …". What it says after it stays as it is, since it may quote a file; if it
        hints at another parameter, as in "give tags=", the option of that is added.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        text, argument = str(error), getattr(error, "argument", "")
        rest = text.removeprefix(argument)
        hinted = [option for name, option in options.items() if f"{name}=" in rest]
        if argument in options:
            text = options[argument] + (f" {rest[1:]}" if rest.startswith("=") else rest)
        elif not hinted:
            raise
        more = f" ({', '.join(hinted)})" if hinted else ""
        raise OptionError(f"{text}{more}") from error
