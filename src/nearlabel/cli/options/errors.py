"""Errors that name the option that was wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class OptionError(ValueError):
    """A value of an option that the library does not accept."""


@contextmanager
def naming(**options: str | None) -> Iterator[None]:
    """Let errors about parameters of the library name the options that set them.

    Parameters
    ----------
    **options : str or None
        The option of each parameter that can be refused within, such as ``split="--split"``; None
        where the command has none, so that a message must not hint at it.
        The message of an `ArgumentError` begins with the argument, "split must be …"; any message
        may hint at parameters, as "give tags=" does.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        text, argument = str(error), getattr(error, "argument", "")
        file = getattr(error, "file", "")
        option = options.get(argument)
        if option is not None and not text.startswith(f"{argument}="):
            text = option + text.removeprefix(argument)
        if file and text.startswith(file):  # its name stays as it is
            text = file + in_options(text.removeprefix(file), options)
        else:
            text = in_options(text, options)
        if text == str(error):
            raise
        raise OptionError(text) from error


def in_options(text: str, options: Mapping[str, str | None]) -> str:
    """A message with "--tags" in place of "tags=", except within quotes: they may cite a file.

    "=True" is removed, since such an option is a switch. So is a hint at the end that names a
    parameter without an option.
    """
    without = "|".join(name for name, option in options.items() if option is None)
    if without:
        hint = rf"(; | \()[^'\"();]*\b(?:{without})=[^'\"();]*(\)?)$"
        text = re.sub(hint, lambda match: match[2] if match[1] == "; " else "", text)
    known = {name: option for name, option in options.items() if option is not None}
    names = "|".join(known)

    def option(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else known[match[1]] + (" " if match[2] else "")

    quoted = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    return re.sub(rf"{quoted}|(?<![\w=])({names})=(?:True\b)?(?=(['\"\w])?)", option, text)
