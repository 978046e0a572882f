"""The verbs about data sets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearlabel.cli.options import Data, Json, Switch
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.reading import LabeledReading
from nearlabel.cli.output import check_target, say, say_json, say_table, steps

_SETS_AT_ONCE = 3  # side by side in 80 columns


def datasets_list(*, json: Json = False) -> None:
    """List the data sets of the data folder.

    Examples
    --------
    nearlabel datasets list
    NEARLABEL_DATA=~/data nearlabel datasets list --json
    """
    import nearlabel as nl

    found = nl.datasets.available()
    if json:
        say_json([{"name": name, "file": str(path)} for name, path in found.items()])
        return
    folders = ", ".join(map(str, nl.datasets.data_folders()))
    if not found:
        say(f"no data set in {folders}")
        say("(NEARLABEL_DATA names other folders; 'nearlabel datasets fetch NAME' gets one)")
        return
    rows = [(name, path.name, f"{path.stat().st_size / 1e6:.2f}") for name, path in found.items()]
    say(f"{len(found)} data sets in {folders}")
    say_table(("name", "file", "MB"), rows)


def describe(
    *data: Data,
    gaps: Switch = False,
    json: Json = False,
    reading: LabeledReading = LabeledReading(),
) -> None:
    """Show the sizes of data sets.

    Parameters
    ----------
    gaps
        Accept missing cells.

    Examples
    --------
    nearlabel datasets describe yeast scene
    nearlabel datasets describe songs.csv --tags moods
    """
    import nearlabel as nl

    if not data:
        raise ValueError("which data set? Give a name or a file")
    found = {name: asdict(nl.datasets.describe(reading.load(name, gaps=gaps))) for name in data}
    if json:
        say_json([{"dataset": name, **told} for name, told in found.items()])
        return
    names = list(found)
    for start in range(0, len(names), _SETS_AT_ONCE):
        some = names[start : start + _SETS_AT_ONCE]
        rows = [
            (key.replace("_", " "), *(_cell(found[name][key]) for name in some))
            for key in found[names[0]]
        ]
        say_table(("", *some), [row for row in rows if any(row[1:])])


def _cell(value: Any) -> str:
    if value is None or (value == 0 and value is not False):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def fetch(*name: str, mirror: str | None = None, json: Json = False) -> None:
    """Download public data sets into the data folder.

    Files that are already there are kept. A file that is downloaded again must
    have the checksum of the first time.

    Parameters
    ----------
    name
        Names of data sets.
    mirror
        Address of a server that has the same files.

    Examples
    --------
    nearlabel datasets fetch yeast scene
    """
    import nearlabel as nl

    if not name:
        raise ValueError("which data set? Give a name, for example yeast")
    paths = []
    for one in name:
        with steps(f"fetching {one}") as progress:
            paths.append(nl.datasets.fetch(one, mirror=mirror, progress=progress))
        if not json:
            say(f"{one}: {paths[-1]}")
    if json:
        say_json([{"name": one, "file": str(path)} for one, path in zip(name, paths, strict=True)])


def convert(
    data: Data,
    target: str,
    *,
    gaps: Switch = False,
    json: Json = False,
    reading: LabeledReading = LabeledReading(),
) -> None:
    """Write a data set in another format.

    Parameters
    ----------
    target
        The file to write: .npz, .arff (with an .xml beside it), .csv, .tsv, .jsonl, .json,
        .parquet, or .txt for the sparse text format.
    gaps
        Accept missing cells, where both formats can have some.

    Examples
    --------
    nearlabel datasets convert yeast yeast.arff
    nearlabel datasets convert songs.csv songs.npz --tags moods --id title
    """
    import nearlabel as nl

    check_target("TARGET", target, data)
    items = reading.load(data, gaps=gaps)
    with naming(path="TARGET", format="TARGET"):
        nl.datasets.save(items, target)
    size = Path(target).stat().st_size
    if json:
        say_json({"file": target, "items": len(items), "bytes": size})
    else:
        say(f"wrote {target} ({len(items)} items, {size / 1e6:.2f} MB)")
