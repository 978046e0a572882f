"""demo: the main commands on painted pictures or made-up songs, as a user would type them."""

from __future__ import annotations

import shlex
import tempfile
import textwrap
from contextlib import chdir
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from nearlabel.cli.output import say
from nearlabel.common.extras import install_command

FEATURES = ("tempo", "energy", "loudness", "brightness", "speech", "acoustic")
MOODS = (
    *("calm", "sad", "happy", "tense", "dreamy", "angry"),
    *("playful", "solemn", "tender", "epic", "lonely", "warm"),
)
SONGS: tuple[str, ...] = (
    "datasets describe songs.csv",
    "evaluate songs.csv --k 5 10 20 --scale standard --metric hamming_loss one_error "
    "ranking_loss average_precision",
    "compare songs.csv --scale standard",
    "fit songs.csv -o songs.model --scale standard",
    "rank songs.model new.csv --top 3",
    "rank songs.model new.csv --top 1 --why",
)
TAGGED, NEW = 300, 100  # pictures


def demo(what: Literal["pictures", "songs"] = "pictures", /, *, folder: str | None = None) -> int:
    """Run the main commands on painted pictures, or on made-up songs.

    Parameters
    ----------
    what
        pictures: a collection of pictures, and tags for new ones; songs: a model of a table.
    folder
        Folder for all files, which must be new or empty; by default a new temporary folder.

    Examples
    --------
    nearlabel demo
    nearlabel demo --folder scenes
    nearlabel demo songs
    """
    if what == "pictures" and find_spec("PIL") is None:
        command = install_command("pictures")
        raise ImportError(f"pictures need Pillow: {command}; 'nearlabel demo songs' does not")
    place = Path(folder or tempfile.mkdtemp(prefix="nearlabel-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    if next(place.iterdir(), None) is not None:
        raise ValueError(f"--folder {folder}: this folder is not empty; give a new one")
    with chdir(place):
        if what == "songs":
            write_songs()
            say("600 made-up songs with six measurements and their moods are in songs.csv;")
            say("three new ones, without moods, in new.csv.\n")
            table, commands, result = "songs.csv", SONGS, "songs.model"
        else:
            write_scenes()
            say(f"{TAGGED} painted pictures are in scenes, their tags in scenes.csv;")
            say(f"{NEW} new ones in new, and what they really show in new.csv.\n")
            table, commands, result = "scenes.csv", picture_commands(), "sheet.html"
        for line in Path(table).read_text(encoding="utf-8").splitlines()[:4]:
            say(f"  {line}")
        code = _run(commands)
    if not code:
        say(f"\nto look at: {place.absolute() / result}")
    return code


def picture_commands() -> tuple[str, ...]:
    """What is done with painted pictures."""
    new = [f"new/pictures/{number:05d}.jpg" for number in range(TAGGED, TAGGED + 4)]
    return (
        "index scenes/pictures -c scenes.nearlabel --tags scenes.csv",
        "collection scenes.nearlabel",
        f"tag scenes.nearlabel {' '.join(new[:2])} --top 3",
        "tag scenes.nearlabel new/pictures --truth new.csv",
        "tag scenes.nearlabel 00000.jpg --add holiday --no sea",
        "collection undo scenes.nearlabel",
        f"retrieve scenes.nearlabel {' '.join(new)} --top 3 --html sheet.html",
    )


def _run(commands: tuple[str, ...]) -> int:
    """Run commands as a user would, until one fails."""
    from nearlabel.cli import run

    for command in commands:
        say(f"\n$ nearlabel {wrapped(command)}")
        code = run(shlex.split(command))
        if code:
            return code
    return 0


def wrapped(command: str) -> str:
    """A command on lines of at most 80 columns, as a shell takes them."""
    lines = textwrap.wrap(command, 66, subsequent_indent="    ", break_on_hyphens=False)
    return " \\\n".join(lines)


def write_songs() -> None:
    """Songs whose moods depend on their measurements, as two tables."""
    import numpy as np

    from nearlabel.datasets import make_local_labels
    from nearlabel.datasets.csv_tables import write_rows

    data = make_local_labels(
        603, len(FEATURES), len(MOODS), labels_per_sample=2.5, n_clusters=6, random_state=4
    )
    X = np.round(np.asarray(data.X, np.float64) * [20, 0.2, 6, 0.2, 0.1, 0.2], 2)
    X += [120, 0.5, -12, 0.5, 0.2, 0.5]
    names = [f"song {row:03d}" for row in range(1, 604)]
    moods = [
        ";".join(MOODS[label] for label in data.Y.indices[start:stop].tolist())
        for start, stop in zip(data.Y.indptr[:-1], data.Y.indptr[1:], strict=True)
    ]
    cells = [[f"{value:.2f}" for value in row] for row in X.tolist()]
    old = [[name, *row, tags] for name, row, tags in zip(names, cells, moods, strict=True)]
    write_rows("songs.csv", [("id", *FEATURES, "tags"), *old[:600]])
    write_rows("new.csv", [("id", *FEATURES), *(row[:-1] for row in old[600:])])


def write_scenes() -> None:
    """Painted pictures in two folders, and a table of what each of them shows."""
    from nearlabel.datasets import paint_scenes
    from nearlabel.datasets.csv_tables import write_rows

    scenes = paint_scenes(TAGGED + NEW)
    for folder, part in (("scenes", slice(TAGGED)), ("new", slice(TAGGED, None))):
        chosen = replace(
            scenes, pictures=scenes.pictures[part], Y=scenes.Y[part], names=scenes.names[part]
        )
        chosen.save(folder)
        shown = [
            ";".join(scenes.label_names[chosen.Y.indices[start:stop]])
            for start, stop in zip(chosen.Y.indptr[:-1], chosen.Y.indptr[1:], strict=True)
        ]
        write_rows(f"{folder}.csv", [("file", "tags"), *zip(chosen.names, shown, strict=True)])
