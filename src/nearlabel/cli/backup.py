"""backup."""

from __future__ import annotations

from nearlabel.cli.open_collections import open_collection
from nearlabel.cli.options import CollectionFolder, Json
from nearlabel.cli.output import Paragraph, counted, render


def backup(collection: CollectionFolder, folder: str, *, json: Json = False) -> None:
    """Copy a collection as a snapshot, even while it is in use.

    The copy is a complete collection. It does not contain the pictures themselves: back them up
    separately.

    Parameters
    ----------
    folder
        Folder of the copy, which must not exist yet.

    Examples
    --------
    nearlabel backup photos.nearlabel /media/disk/photos.nearlabel
    """
    with open_collection(collection, readonly=True) as store:
        store.backup(folder)
    with open_collection(folder, readonly=True) as copied:
        counts = copied.counts()
    text = Paragraph(f"{folder}: a copy of {collection} with {counted(counts['items'], 'item')}")
    render({"collection": collection, "backup": folder, **counts}, text, json)
