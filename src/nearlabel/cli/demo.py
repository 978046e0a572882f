"""demo: the main verbs on made-up songs, as a user would type them."""

from __future__ import annotations

import shlex
import tempfile
import textwrap
from contextlib import chdir
from pathlib import Path

from nearlabel.cli.output import say

FEATURES = ("tempo", "energy", "loudness", "brightness", "speech", "acoustic")
MOODS = (
    *("calm", "sad", "happy", "tense", "dreamy", "angry"),
    *("playful", "solemn", "tender", "epic", "lonely", "warm"),
)
COMMANDS = (
    "datasets describe songs.csv",
    "evaluate songs.csv --k 5 10 20 --scale standard --metric hamming_loss one_error "
    "ranking_loss average_precision",
    "compare songs.csv --scale standard",
    "fit songs.csv -o songs.model --scale standard",
    "rank songs.model new.csv --top 3",
    "rank songs.model new.csv --top 1 --why",
)


def demo(*, folder: str | None = None) -> int:
    """Run the main verbs on made-up songs.

    Parameters
    ----------
    folder
        Where to keep songs.csv, new.csv and songs.model; by default they are deleted.

    Examples
    --------
    nearlabel demo
    nearlabel demo --folder songs
    """
    from nearlabel.cli import run

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary if folder is None else folder)
        place.mkdir(parents=True, exist_ok=True)
        with chdir(place):
            write_songs()
            say("600 made-up songs with six measurements and their moods are in songs.csv;")
            say("three new ones, without moods, in new.csv.\n")
            for line in Path("songs.csv").read_text(encoding="utf-8").splitlines()[:3]:
                say(f"  {line}")
            for command in COMMANDS:
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
