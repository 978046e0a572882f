"""Errors that name the option that was wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""


class OptionError(ValueError):
    """A value of an option that the library refuses."""


@contextmanager
def naming(**options: str) -> Iterator[None]:
    """Let errors about parameters of the library name the options that set them.

    Parameters
    ----------
    **options : str
        The option of each parameter that can be refused within, such as ``split="--split"``.
        The message of an `ArgumentError` begins with the argument, "split must be …"; any message
        may hint at parameters, as "give tags=" does.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        text, argument = str(error), getattr(error, "argument", "")
        file = getattr(error, "file", "")
        if argument in options and not text.startswith(f"{argument}="):
            text = options[argument] + text.removeprefix(argument)
        if file and text.startswith(file):  # its name stays as it is
            text = file + in_options(text.removeprefix(file), options)
        else:
            text = in_options(text, options)
        if text == str(error):
            raise
        raise OptionError(text) from error


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A message with "--tags" in place of "tags=", except within quotes: they may cite a file.

    "=True" falls away: an option is a switch where its parameter is.
    """
    names = "|".join(options)

    def option(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else options[found[1]] + (" " if found[2] else "")

    return re.sub(rf"{_QUOTED}|(?<![\w=])({names})=(?:True\b)?(?=(['\"\w])?)", option, text)
