"""Export of the tags of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.collection.exchange.beside import files_there
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection


def tagged_files(collection: Collection) -> Iterator[TaggedFile]:
    """All items with their decisions.

    A file is named by its path in the indexed folder, or by its absolute path if several folders
    were indexed; an item without a file by its name.
    """
    several, items = len(collection.roots()) > 1, collection.items()
    paths = {file.path for item in items for file in item.files}
    for item in items:
        files = sorted(item.files, key=lambda file: file.is_missing)
        names = [str(Path(file.root, file.path)) if several else file.path for file in files]
        if not names:  # distinct from a file that took its place
            names = [f"{item.name} (item {item.id})" if item.name in paths else item.name]
        first, *others = map(encodable, names)
        place = next(iter(files_there(item)), None)
        yield TaggedFile(first, (*item.yes,), (*item.no,), item.content, (*others,), item.id, place)
