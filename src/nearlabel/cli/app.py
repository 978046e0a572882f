"""The commands of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter

from nearlabel import __version__
from nearlabel.cli import collection_verbs, datasets, networks
from nearlabel.cli.errors import EXAMPLES

if TYPE_CHECKING:
    from rich.console import Console

# A command is the function of its name, in the module of its name unless _MODULES has another.
_VERBS = (
    *("demo", "index", "tag", "review", "retrieve", "serve"),
    *("fit", "predict", "rank", "add", "forget", "relabel", "verify"),
    *("evaluate", "tune", "compare", "reproduce"),
)
_MODULES = {"index": "index_folders"}
_USAGES = {  # cyclopts would print ARGS
    "predict": "nearlabel predict [OPTIONS] MODEL DATA...",
    "rank": "nearlabel rank [OPTIONS] MODEL DATA...",
    "tag": "nearlabel tag [OPTIONS] COLLECTION [PICTURE...]",
    "retrieve": "nearlabel retrieve [OPTIONS] MODEL DATA...",
    "forget": "nearlabel forget [OPTIONS] MODEL ID...",
    "relabel": "nearlabel relabel [OPTIONS] MODEL [DATA]",
    "import": "nearlabel import [OPTIONS] COLLECTION [SOURCE]",
}


def _add(group: App, verb: Callable[..., Any], name: str, usage: str | None = None) -> None:
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
for _verb in _VERBS:
    _module = import_module(f"nearlabel.cli.{_MODULES.get(_verb, _verb)}")
    _add(app, getattr(_module, _verb), _verb, _USAGES.get(_verb))

_datasets = App(
    name="datasets",
    help="List, describe, fetch, convert and paint data sets.",
    help_epilogue=f"{EXAMPLES}"
    "  nearlabel datasets list\n"
    "  nearlabel datasets describe yeast\n"
    "  nearlabel datasets convert songs.csv songs.arff",
)
_add(_datasets, datasets.datasets_list, "list")
_several = "nearlabel datasets {} [OPTIONS] {}..."  # cyclopts would print ARGS
_add(_datasets, datasets.describe, "describe", _several.format("describe", "DATA"))
_add(_datasets, datasets.fetch, "fetch", _several.format("fetch", "NAME"))
_add(_datasets, datasets.convert, "convert")
_add(_datasets, datasets.paint, "paint")
app.command(_datasets)

_collection = App(
    name="collection",
    help="Show what is in a collection, or change it as a whole.",
    help_epilogue=f"{EXAMPLES}"
    "  nearlabel collection photos.nearlabel\n"
    "  nearlabel collection items photos.nearlabel --state untagged\n"
    "  nearlabel collection undo photos.nearlabel",
    usage="nearlabel collection [COMMAND] COLLECTION",
)
_collection.default(collection_verbs.collection)
for _verb in ("items", "changes", "undo", "rename", "compact"):
    _add(_collection, getattr(collection_verbs, _verb), _verb)
_add(
    _collection,
    collection_verbs.method,
    "method",
    "nearlabel collection method [OPTIONS] COLLECTION [NAME]",
)
_add(
    _collection,
    collection_verbs.merge,
    "merge",
    "nearlabel collection merge [OPTIONS] COLLECTION TAG...",
)
app.command(_collection)

_models = App(
    name="models",
    help="List and get the networks that turn pictures and texts into vectors.",
    help_epilogue=f"{EXAMPLES}  nearlabel models list\n  nearlabel models get pplcnetv2",
)
_add(_models, networks.models_list, "list")
_add(_models, networks.models_get, "get")
app.command(_models)
for _verb, _name in (("import", "import_tags"), ("export", "export_tags"), ("backup", "backup")):
    _add(app, getattr(import_module(f"nearlabel.cli.{_name}"), _name), _verb, _USAGES.get(_verb))
app.register_install_completion_command(help="Install completion of commands for this shell.")
