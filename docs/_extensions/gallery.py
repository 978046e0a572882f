"""The examples draw to files named on their command line: the gallery chooses and shows them."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sphinx_gallery.scrapers import figure_rst

DRAWN = Path(mkdtemp(prefix="nearlabel-gallery-"))
IN_FOLDERS = ("method_figures.py", "quality_figure.py")  # they draw several figures


def arguments(_: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """The arguments of an example: its output file or folder."""
    script["example_globals"]["__file__"] = script["src_file"]
    name = Path(script["src_file"]).name
    return [str(DRAWN if name in IN_FOLDERS else DRAWN / "picture.png")]


def drawn(_: Any, script: dict[str, Any], settings: dict[str, Any]) -> str:
    """The figures of an example, moved to the folder of the gallery."""
    paths = []
    for picture in sorted(DRAWN.glob("*.png")):
        paths.append(next(script["image_path_iterator"]))
        shutil.move(picture, paths[-1])
    return figure_rst(paths, settings["src_dir"])
