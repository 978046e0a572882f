"""The commands for data sets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Count, Data, Json, Required, Seed, Switch
from nearlabel.cli.options.reading import LabeledReading
from nearlabel.cli.output import (
    Block,
    Paragraph,
    Table,
    check_target,
    counted,
    file_size,
    render,
    steps,
)


def datasets_list(*, public: Switch = False, json: Json = False) -> None:
    """List the data sets in the data folder, or public ones.

    Parameters
    ----------
    public
        List the public data sets that 'nearlabel datasets fetch' can download, with their sizes.

    Examples
    --------
    nearlabel datasets list
    nearlabel datasets list --public
    NEARLABEL_DATA=~/data nearlabel datasets list --json
    """
    import nearlabel as nl
    from nearlabel.datasets.picture_sets import available_pictures
    from nearlabel.datasets.public_sets import HOMES

    tables = nl.datasets.available()
    if public:
        heads = ("name", "items", "features", "labels", "there")
        homes = [(name, *home.shape, name in tables) for name, home in HOMES.items()]
        render(
            [dict(zip(heads, home, strict=True)) for home in homes],
            [
                Table(heads, [(*home, "yes" if there else "no") for *home, there in homes]),
                Paragraph("'nearlabel datasets fetch NAME' downloads one into the data folder"),
            ],
            json,
        )
        return
    pictures = available_pictures()
    folders = ", ".join(map(str, nl.datasets.data_folders()))
    rows = [
        (name, path.name.removeprefix(f"{name}."), file_size(path)) for name, path in tables.items()
    ]
    rows += [(name, "pictures", "") for name in pictures]
    listed: list[Block] = [
        f"{counted(len(rows), 'data set')} in {folders}",
        Table(("name", "format", "size"), rows),
    ]
    render(
        [{"name": name, "file": path} for name, path in (tables | pictures).items()],
        [
            *(listed if rows else [f"no data set in {folders}; NEARLABEL_DATA sets other folders"]),
            Paragraph(
                "'nearlabel datasets list --public' shows what 'nearlabel datasets fetch' downloads"
            ),
        ],
        json,
    )


def describe(
    *data: Annotated[Data, Required],
    gaps: Switch = False,
    json: Json = False,
    reading: LabeledReading = LabeledReading(),
) -> None:
    """Show the sizes of data sets and statistics of their labels.

    Parameters
    ----------
    gaps
        Allow missing values.

    Examples
    --------
    nearlabel datasets describe yeast scene
    nearlabel datasets describe songs.csv --tags moods
    """
    import nearlabel as nl

    descriptions = {
        name: asdict(nl.datasets.describe(reading.load(name, gaps=gaps))) for name in data
    }
    rows = [
        (key.replace("_", " "), *(_cell(description[key]) for description in descriptions.values()))
        for key in next(iter(descriptions.values()))
    ]
    render(
        [{"dataset": name, **description} for name, description in descriptions.items()],
        Table(("", *descriptions), [row for row in rows if any(row[1:])]),
        json,
    )


def _cell(value: object) -> str:
    if value is None or (value == 0 and value is not False):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def fetch(
    *name: Annotated[str, Required],
    mirror: Annotated[str | None, Parameter(metavar="URL")] = None,
    json: Json = False,
) -> None:
    """Download public data sets into the data folder.

    Files that are already there are kept. A file that is downloaded again must
    have the same checksum as the first time.

    Parameters
    ----------
    name
        Names of data sets; 'nearlabel datasets list --public' shows them.
    mirror
        URL of a server with the same files.

    Examples
    --------
    nearlabel datasets fetch yeast scene
    """
    import nearlabel as nl

    fetched = []
    for wanted in name:
        with steps(f"fetching {wanted}") as progress:
            path = nl.datasets.fetch(wanted, mirror=mirror, progress=progress)
        fetched.append({"name": wanted, "file": path})
    render(fetched, [f"{data['name']}: {data['file']}" for data in fetched], json)


def paint(
    folder: str,
    *,
    n: Count = 500,
    seed: Seed = 0,
    overwrite: Switch = False,
    json: Json = False,
) -> None:
    """Paint landscapes with labels, to try commands on pictures.

    They show deserts, mountains, the sea, sunsets and trees, alone or combined.

    Parameters
    ----------
    folder
        Folder for pictures/ and labels.csv.
    n
        Number of pictures.
    seed
        Random seed.
    overwrite
        Overwrite existing files.

    Examples
    --------
    nearlabel datasets paint scenes
    nearlabel datasets paint scenes --n 100 --seed 1
    """
    import nearlabel as nl

    table = Path(folder, "labels.csv")
    if table.exists() and not overwrite:
        raise ValueError(f"{table} already exists; --overwrite replaces it and its pictures")
    scenes = nl.datasets.paint_scenes(n, seed)
    scenes.save(folder, overwrite=overwrite)
    render(
        {"folder": folder, "pictures": n, "labels": scenes.label_names},
        f"wrote {table} and {counted(n, 'picture')} in {Path(folder, 'pictures')}",
        json,
    )


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
        File to write: .npz, .arff (with an .xml next to it), .csv, .tsv, .jsonl, .json,
        .parquet, or .txt for the sparse text format.
    gaps
        Allow missing values, if both formats support them.

    Examples
    --------
    nearlabel datasets convert yeast yeast.arff
    nearlabel datasets convert songs.csv songs.npz --tags moods --id title
    """
    import nearlabel as nl
    from nearlabel.datasets.formats import SUFFIXES

    check_target("TARGET", target, data)
    if Path(target).suffix.lower() not in SUFFIXES:
        raise ValueError(f"TARGET must end in one of {', '.join(SUFFIXES)}; got {target}")
    items = reading.load(data, gaps=gaps)
    nl.datasets.save(items, target)
    render(
        {"file": target, "items": len(items), "bytes": Path(target).stat().st_size},
        f"wrote {target} ({counted(len(items), 'item')}, {file_size(target)})",
        json,
    )
