"""Messages about commands that cannot be parsed: one line, with the closest name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

EXAMPLES = "Examples:\n"  # the first line below the help of a command
_KINDS = {int: "a whole number", float: "a number"}


def usage_message(app: App, error: CycloptsError, words: Sequence[str]) -> str:
    """The message about the words of a command; with an example if an argument is missing."""
    verb = error.command_chain or ()
    group = _command(app, verb)
    if isinstance(error, UnknownCommandError):
        return _unknown("command", (error.unused_tokens or words)[0], _commands(group), verb)
    if (mistyped := _mistyped_command(group, verb, words)) is not None:
        return mistyped
    if isinstance(error, UnknownOptionError):
        token = error.token
        word = token.keyword or token.value
        return _unknown_option(group, verb, [word]) or f"unknown option {word}"
    if isinstance(error, UnusedCliTokensError | ValidationError):
        spare = "".join(f"unexpected argument {word!r}" for word in (error.unused_tokens or ())[:1])
        refused = error.exception_message if isinstance(error, ValidationError) else ""
        return _unknown_option(group, verb, words) or spare or refused or str(error)
    if isinstance(error, CoercionError) and error.token is not None:
        return _refused_value(error)
    if isinstance(error, RepeatArgumentError):
        return f"{error.token.keyword} is given twice"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, group, verb, words)
    return str(error)


def _command(app: App, verb: Sequence[str]) -> App:
    for word in verb:
        app = app[word]
    return app


def _commands(group: App) -> list[str]:
    return [name for name in group if not name.startswith("-")]


def _unknown(what: str, name: str, known: Iterable[str], verb: Sequence[str]) -> str:
    """A message about an unknown name: with the closest one, or with where to find them all."""
    from nearlabel.common.messages import did_you_mean

    shown = name if what == "option" else repr(name)
    listed = f"; '{' '.join(['nearlabel', *verb])} --help' lists all {what}s"
    before = f"{' '.join(verb)}: " if what == "command" and verb else ""
    return f"{before}unknown {what} {shown}{did_you_mean(name, known) or listed}"


def _mistyped_command(group: App, verb: Sequence[str], words: Sequence[str]) -> str | None:
    """The message about a word that was taken for a collection, but looks like a command."""
    from nearlabel.common.messages import did_you_mean

    word = next((word for word in words if word not in verb and not word.startswith("-")), "")
    known = _commands(group) if group.default_command else []
    return _unknown("command", word, known, verb) if did_you_mean(word, known) else None


def _unknown_option(group: App, verb: Sequence[str], words: Sequence[str]) -> str | None:
    """The message about the first word that is an option which a command does not have."""
    arguments = group.assemble_argument_collection()
    known = [name for argument in arguments for name in argument.names if name.startswith("-")]
    for word in words:
        name = word.partition("=")[0]
        if re.match("--?[a-z]", name) and not {name, name[:2]} & {*known, "-h", "--help"}:
            return _unknown("option", name, known, verb)
    return None


def _refused_value(error: CoercionError) -> str:
    """The message about a value: the option, what it accepts, and what was given."""
    from nearlabel.common.messages import did_you_mean

    token: Any = error.token
    name = token.keyword or (error.argument.name.lstrip("-").upper() if error.argument else "")
    given, kind = token.value, error.target_type
    if error.msg is not None:  # of our own converters
        return f"{name} {error.msg}"
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        return f"{name} must be one of {', '.join(choices)}; got {given!r}" + did_you_mean(
            given, choices
        )
    if kind is bool:
        return f"{name} takes no value; got {given!r}"
    return f"{name} must be {_KINDS[kind]}; got {given!r}" if kind in _KINDS else str(error)


def _missing(
    error: MissingArgumentError, group: App, verb: Sequence[str], words: Sequence[str]
) -> str:
    """The message about an argument, or the value of an option, that is missing."""
    argument: Any = error.argument
    if error.keyword is not None or argument.tokens:
        return f"{error.keyword or argument.name} needs a value"
    name = argument.name.lstrip("-").upper() if argument.index is not None else argument.name
    missing = f"{' '.join(verb)}: {name} is missing"
    for other in group.assemble_argument_collection():
        if argument.index is not None and other.parameter.consume_multiple:
            for word in {*other.names} & {*words}:
                return f"{missing}; give it before {word}, which takes all values that follow it"
    example = str(group.help_epilogue).removeprefix(EXAMPLES).splitlines()[0].strip()
    return f"{missing}; for example: {example}"
