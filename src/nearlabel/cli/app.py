"""The commands of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter

from nearlabel import __version__
from nearlabel.cli.errors import EXAMPLES

if TYPE_CHECKING:
    from rich.console import Console

_COMMANDS = (
    *("demo", "index", "tag", "review", "retrieve", "serve"),
    *("fit", "predict", "rank", "add", "forget", "relabel", "verify"),
    *("evaluate", "tune", "compare", "reproduce"),
    *(f"datasets {verb}" for verb in ("list", "describe", "fetch", "convert", "paint")),
    *(f"collection {verb}" for verb in ("items", "changes", "undo", "rename", "compact")),
    *("collection method", "collection merge", "models list", "models get"),
    *("import", "export", "backup"),
)
# The module of a command has the name of its first word, and the function that of its last, but
_MODULES = {
    "index": "index_folders",
    "collection": "collection_verbs",
    "models": "networks",
    "import": "import_tags",
    "export": "export_tags",
}
_FUNCTIONS = {
    "datasets list": "datasets_list",
    "models list": "models_list",
    "models get": "models_get",
    "import": "import_tags",
    "export": "export_tags",
}
_GROUPS: dict[str, dict[str, Any]] = {
    "datasets": {
        "help": "List, describe, fetch, convert and paint data sets.",
        "help_epilogue": f"{EXAMPLES}"
        "  nearlabel datasets list\n"
        "  nearlabel datasets describe yeast\n"
        "  nearlabel datasets convert songs.csv songs.arff",
    },
    "collection": {
        "help": "Show what is in a collection, or change it as a whole.",
        "help_epilogue": f"{EXAMPLES}"
        "  nearlabel collection photos.nearlabel\n"
        "  nearlabel collection items photos.nearlabel --state untagged\n"
        "  nearlabel collection undo photos.nearlabel",
        "usage": "nearlabel collection [COMMAND] COLLECTION",
    },
    "models": {
        "help": "List and get the networks that turn pictures and texts into vectors.",
        "help_epilogue": f"{EXAMPLES}  nearlabel models list\n  nearlabel models get pplcnetv2",
    },
}
_USAGES = {  # cyclopts would print ARGS
    "predict": "MODEL DATA...",
    "rank": "MODEL DATA...",
    "tag": "COLLECTION [PICTURE...]",
    "retrieve": "MODEL DATA...",
    "forget": "MODEL ID...",
    "relabel": "MODEL [DATA]",
    "import": "COLLECTION [SOURCE]",
    "datasets describe": "DATA...",
    "datasets fetch": "NAME...",
    "collection method": "COLLECTION [NAME]",
    "collection merge": "COLLECTION TAG...",
}


def command_line(words: Sequence[str] = ()) -> App:
    """The commands that words may mean: the one that they begin with, or all.

    The modules of the others are not imported.
    """
    app = App(
        name="nearlabel",
        help="Learn the labels of items from the labeled items nearest to them.",
        version=__version__,
        help_format="plaintext",
        help_formatter=_Help(),
        help_epilogue=f"{EXAMPLES}"
        "  nearlabel demo songs\n"
        "  nearlabel index photos -c photos.nearlabel --tags tags.csv\n"
        "  nearlabel tag photos.nearlabel new.jpg\n"
        "  nearlabel serve photos.nearlabel --open\n"
        "  nearlabel fit songs.csv -o songs.model\n"
        "  nearlabel rank songs.model new.csv --top 3\n\n"
        "'nearlabel COMMAND --help' shows all options, with examples.",
        default_parameter=Parameter(negative=()),
        # Errors, interrupts and the exit code are handled by `nearlabel.cli.process`.
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    groups = {"": app}
    is_one = any([*words[:1]] == name.split()[:1] for name in _COMMANDS)
    for name in _COMMANDS:
        group, _, verb = name.rpartition(" ")
        first = group or verb
        if is_one and first != words[0]:
            continue
        module = import_module(f"nearlabel.cli.{_MODULES.get(first, first)}")
        if group not in groups:
            groups[group] = App(name=group, **_GROUPS[group])
            app.command(groups[group])
            if group == "collection":
                groups[group].default(module.collection)
        usage = f"nearlabel {name} [OPTIONS] {_USAGES[name]}" if name in _USAGES else None
        _add(groups[group], getattr(module, _FUNCTIONS.get(name, verb)), verb, usage)
    app.register_install_completion_command(help="Install completion of commands for this shell.")
    return app


def _add(group: App, verb: Callable[..., Any], name: str, usage: str | None) -> None:
    """Add a command; the examples of its docstring go below its help."""
    text, _, examples = inspect.cleandoc(verb.__doc__ or "").partition("Examples\n--------\n")
    about = text.partition("Parameters\n----------\n")[0].strip()
    paragraphs = "\n\n".join(" ".join(paragraph.split()) for paragraph in about.split("\n\n"))
    lines = "\n".join(f"  {line}".rstrip() for line in examples.splitlines())
    group.command(verb, name=name, help=paragraphs, usage=usage, help_epilogue=f"{EXAMPLES}{lines}")


class _Help:
    """Help as cyclopts prints it, but with texts wrapped by the terminal, not as in the source."""

    def __call__(self, console: Console, options: Any, panel: Any) -> None:
        from cyclopts.help import DefaultFormatter  # slow to import
        from rich.text import Text

        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = " ".join(text.plain.split())
        DefaultFormatter()(console, options, panel)

    def render_usage(self, console: Console, options: Any, usage: Any) -> None:
        """Print the first line."""
        from cyclopts.help import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)
