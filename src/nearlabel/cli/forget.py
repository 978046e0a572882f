"""forget."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from nearlabel.cli.changing import Changing
from nearlabel.cli.open_collections import is_collection
from nearlabel.cli.options import Switch
from nearlabel.cli.options.reading import source_name
from nearlabel.cli.output import counted


def forget(
    model: str,
    *id: str,
    ids: Annotated[
        str | None, Parameter(name="--ids", metavar="FILE", allow_leading_hyphen=True)
    ] = None,
    ignore_missing: Switch = False,
    changing: Changing = Changing(),
) -> int | None:
    """Remove items from a model or a collection, and from everything learned from them.

    Afterwards, no result depends on them. Without ids, --compact removes the traces of items that
    were forgotten earlier, and --refresh learns everything again. From a collection, items are
    erased at once and for good, with vectors, names and thumbnails; their files are not touched.

    Parameters
    ----------
    model
        Model file, as written by fit, or folder of a collection.
    id
        Ids of items; for a collection also their names or files.
    ids
        File with more ids, one per line; - for standard input.
    ignore_missing
        Skip ids that the model does not have.

    Examples
    --------
    nearlabel forget songs.model "song 017" "song 230"
    nearlabel forget songs.model --ids withdrawn.txt --compact --verify
    nearlabel forget songs.model --ids withdrawn.txt --ignore-missing
    nearlabel forget songs.model --compact
    nearlabel forget photos.nearlabel 17 rome/0018.jpg
    """
    listed = [] if ids is None else _lines(ids)
    source = None if ids is None else source_name(ids)
    if not id and not listed and not changing.writes_anew:
        where = f"{source} has no id" if source else "ID is missing"
        example = "photos.nearlabel 17" if is_collection(model) else "songs.model 'song 017'"
        raise ValueError(f"forget: {where}; for example: nearlabel forget {example}")
    with changing.opened(model) as opened:
        record = opened.forget(id, listed, source, ignore_missing)
        done = "refreshed" if changing.refresh else "compacted"
        if id or listed:
            done = f"forgot {counted(record['forgotten'], 'item')}"
        if record["missing"]:
            done += f", {counted(record['missing'], 'id')} not found"
        return changing.finish(opened, done, **record)


def _lines(path: str) -> list[str]:
    """The lines of a file that are not empty."""
    from nearlabel.datasets.text_lines import TextFile

    with TextFile(path) as file:
        return [line.strip() for line in file.lines() if line.strip()]
