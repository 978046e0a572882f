"""forget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from nearlabel.cli.collection_changes import forget_items
from nearlabel.cli.model_changes import Changing, OpenModel, source_name
from nearlabel.cli.open_collections import is_collection
from nearlabel.cli.options import Switch
from nearlabel.cli.output import counted, steps


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
    names = [*dict.fromkeys([*id, *listed])]
    if not names and not changing.writes_anew:
        where = f"{source} has no id" if source else "ID is missing"
        example = "photos.nearlabel 17" if is_collection(model) else "songs.model 'song 017'"
        raise ValueError(f"forget: {where}; for example: nearlabel forget {example}")
    if is_collection(model):
        return forget_items(model, names, ignore_missing, changing)
    with changing.opened(model, ids="ID" if source is None or id else source) as opened:
        _refuse_files(opened, id)
        if not ignore_missing:  # each error names where the id was given
            advice = "; --ignore-missing skips such ids"
            opened.known_ids(id, advice=advice)
            opened.known_ids(listed, source, advice=advice)
        known = opened.known_ids(names, ignore_missing=ignore_missing)
        with steps("forgetting") as progress:
            opened.model.forget(known, progress=progress)
        nothing = "refreshed" if changing.refresh else "compacted"
        forgot = f"forgot {counted(len(known), 'item')}" if names else nothing
        missing = len(names) - len(known)
        if missing:
            forgot += f", {counted(missing, 'id')} not found"
        return changing.finish(opened, forgot, forgotten=len(known), missing=missing)


def _refuse_files(opened: OpenModel, names: Sequence[str]) -> None:
    """Refuse a file that was given as if its name were an id."""
    if files := [name for name in names if Path(name).is_file()]:
        known = {str(id) for id in opened.model.ids_}
        for file in (name for name in files if name not in known):
            raise ValueError(f"no item has the id {file}; for a file of ids, use --ids {file}")


def _lines(path: str) -> list[str]:
    """The lines of a file that are not empty."""
    from nearlabel.datasets.text_lines import TextFile

    with TextFile(path) as file:
        return [line.strip() for line in file.lines() if line.strip()]
