"""Errors in the words of commands: the options that set the parameters of the library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cyclopts import MissingArgumentError, ValidationError

from nearlabel.common.messages import did_you_mean

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

EXAMPLES = "Examples:\n"  # the first line below the help of a command
# Parameters whose options have other names; the first that a command has is the one.
_OPTIONS = {
    "n_neighbors": ("--k",),
    "per_class": ("--k",),
    "metric": ("--metric", "--distance"),
    "n_jobs": ("--jobs",),
    "random_state": ("--seed",),
    "gaps": ("--gaps", "--impute median"),
    "ids": ("ID",),
    "network": ("--features", "NAME"),
    "source": ("--from",),
}
# Parameters at which messages hint, and which not all commands have.
_HINTS = (
    *("format", "id", "delimiter", "encoding", "tags", "separator", "labels", "xml", "ignore"),
    *("nominal", "text", "categories", "journal", "readonly"),
)


def usage_message(app: App, error: CycloptsError, words: Sequence[str]) -> str:
    """The message about words that are no command; with an example if something is missing."""
    text, command = " ".join(str(error).split()), command_of(app, words)
    verbs = [name for name in command if not name.startswith("-")]
    if command.default_command and verbs:  # what it took for an argument may be one of them
        for word in words[1:2]:
            if hint := did_you_mean(word, verbs):
                return f"Unknown command {word!r}{hint}"
    if isinstance(error, ValidationError):  # DATA takes what is no option: - is standard input
        known = [name for each in command.assemble_argument_collection() for name in each.names]
        names = (word.partition("=")[0] for word in words)
        for name in names:
            if re.fullmatch("--?[a-z-]+", name) and name not in known:
                return f"Unknown option: {name}{did_you_mean(name, known)}"
    if isinstance(error, MissingArgumentError):
        examples = str(command.help_epilogue).removeprefix(EXAMPLES)
        return f"{text} For example: {examples.splitlines()[0].strip()}"
    return text


def command_of(app: App, words: Sequence[str]) -> App:
    """The command that words begin with."""
    _, commands, _ = app.parse_commands([word for word in words if not word.startswith("-")])
    return commands[-1]


def options_of(command: App) -> dict[str, str | None]:
    """The option for each parameter that messages may name; None if the command has none."""
    own: dict[str, str | None] = {}
    for argument in command.assemble_argument_collection() if command.default_command else ():
        name = argument.name.lstrip("-")
        if name != "*":  # a group of options
            option = argument.name if argument.index is None else name.upper()
            own[name.replace("-", "_")] = option
    others = {
        name: next((option for option in options if option.split()[0] in own.values()), None)
        for name, options in _OPTIONS.items()
    }
    return {**dict.fromkeys(_HINTS), **own, **others}


def in_options(error: object, options: Mapping[str, str | None]) -> str:
    """A message of the library with "--tags" in place of "tags=".

    The message of an `ArgumentError` begins with its argument, "split must be …". "=True" is
    removed, since such an option is a switch, and so is a hint at the end at what the command does
    not have. File names and quoted texts stay as they are.
    """
    text, argument = str(error), getattr(error, "argument", "")
    option = options.get(argument)
    if option is not None and not text.startswith(f"{argument}="):
        text = option.split()[0] + text.removeprefix(argument)
    file = str(getattr(error, "file", ""))
    file = file if text.startswith(file) else ""
    text = text.removeprefix(file)
    without = "|".join(name for name, option in options.items() if option is None)
    if without:
        hint = rf"(; | \()[^'\"();]*\b(?:{without})=[^'\"();]*(\)?)$"
        text = re.sub(hint, lambda match: match[2] if match[1] == "; " else "", text)
    known = {name: option for name, option in options.items() if option is not None}

    def shown(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else known[match[1]] + (" " if match[2] else "")

    quoted = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    named = rf"(?<![\w=])({'|'.join(known)})=(?:True\b)?(?=(['\"\w])?)"
    return file + re.sub(f"{quoted}|{named}", shown, text)
