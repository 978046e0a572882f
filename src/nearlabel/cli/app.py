"""The verbs of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from cyclopts import App, Parameter

from nearlabel import __version__
from nearlabel.cli import datasets

# A verb is the function of its name in the module of its name.
_VERBS = ("demo", "fit", "predict", "rank", "evaluate", "tune", "compare", "reproduce")


def _add(group: App, verb: Callable[..., Any], name: str) -> None:
    """Add a verb, with the examples of its docstring under its help."""
    examples = inspect.cleandoc(verb.__doc__ or "").partition("Examples\n--------\n")[2]
    lines = "\n".join(f"  {line}".rstrip() for line in examples.splitlines())
    group.command(verb, name=name, help_epilogue=f"Examples:\n{lines}")


app = App(
    name="nearlabel",
    help="Labels for items, from the labelled items nearest to them.",
    version=__version__,
    help_format="plaintext",
    help_epilogue="Examples:\n"
    "  nearlabel demo\n"
    "  nearlabel fit songs.csv -o songs.model\n"
    "  nearlabel rank songs.model new.csv --top 3\n\n"
    "'nearlabel VERB --help' shows all options, with examples.",
    default_parameter=Parameter(negative=()),
    # Errors, interrupts and the exit code are for `nearlabel.cli.process`.
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for _verb in _VERBS:
    _add(app, getattr(import_module(f"nearlabel.cli.{_verb}"), _verb), _verb)

_datasets = App(
    name="datasets",
    help="List, describe, fetch and convert data sets.",
    help_epilogue="Examples:\n"
    "  nearlabel datasets list\n"
    "  nearlabel datasets describe yeast\n"
    "  nearlabel datasets convert songs.csv songs.arff",
)
_add(_datasets, datasets.datasets_list, "list")
_add(_datasets, datasets.describe, "describe")
_add(_datasets, datasets.fetch, "fetch")
_add(_datasets, datasets.convert, "convert")
app.command(_datasets)
app.register_install_completion_command(help="Let this shell complete commands and options.")
