"""The verbs of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cyclopts import App, Parameter

from nearlabel import __version__
from nearlabel.cli.compare import compare
from nearlabel.cli.datasets import convert, datasets_list, describe, fetch
from nearlabel.cli.demo import demo
from nearlabel.cli.evaluate import evaluate
from nearlabel.cli.fit_predict_rank import fit, predict, rank
from nearlabel.cli.reproduce import reproduce
from nearlabel.cli.tune import tune


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
    "'nearlabel VERB --help' tells more, with examples.",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
_add(app, demo, "demo")
_add(app, fit, "fit")
_add(app, predict, "predict")
_add(app, rank, "rank")
_add(app, evaluate, "evaluate")
_add(app, tune, "tune")
_add(app, compare, "compare")
_add(app, reproduce, "reproduce")

_datasets = App(
    name="datasets",
    help="List, describe, fetch and convert data sets.",
    help_epilogue="Examples:\n"
    "  nearlabel datasets list\n"
    "  nearlabel datasets describe yeast\n"
    "  nearlabel datasets convert songs.csv songs.arff",
)
_add(_datasets, datasets_list, "list")
_add(_datasets, describe, "describe")
_add(_datasets, fetch, "fetch")
_add(_datasets, convert, "convert")
app.command(_datasets)
app.register_install_completion_command(help="Let this shell complete commands and options.")
