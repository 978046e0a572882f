"""Vectors of collections of version 1, in files `vectors-N.bin`, move into the database once.

Such a file has a header of 64 bytes and records: 16 bytes with the item's id, the length of the
data and a checksum of both, then the data as they are stored today. The database knows where the
records are that count.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from contextlib import suppress
from io import FileIO
from pathlib import Path

from nearlabel.collection.change_log import LISTED, MOST
from nearlabel.collection.folder_checks import CollectionError, opened_plainly
from nearlabel.collection.stored_vectors import Form, checksum, named_vectors, read_form

_RECORD = struct.Struct("<qII")  # item, bytes of the data, checksum


def move_vectors(connection: sqlite3.Connection, path: Path) -> int:
    """Store the records of a file as rows, within a transaction.

    A row has the place of its record as its number, so that items and the log name the same. A
    damaged record gets no row, and the files of its item will be read again.

    Returns
    -------
    int
        How many items have lost their vectors.
    """
    form, named = read_form(connection), named_vectors(connection)
    last, lost = max(named, default=0), set(named)
    if last >= MOST // 2:
        raise CollectionError("is damaged: a vector is not where it should be")
    with suppress(FileNotFoundError), FileIO(path, "r", opener=opened_plainly) as file:
        for place, item in sorted(named.items()):
            content = None if form is None else _content_at(file, place, item, form)
            if content is not None:
                row = place, item, content, checksum(item, content)
                connection.execute("INSERT INTO vectors VALUES (?, ?, ?, ?)", row)
                lost.discard(place)
    if lost:  # their numbers must not be given to other vectors
        connection.execute("INSERT INTO vectors VALUES (?, 0, x'', 0)", (last + 1,))
    select = f"SELECT id FROM items WHERE vector IN {LISTED}"
    items = json.dumps([id for (id,) in connection.execute(select, (json.dumps(sorted(lost)),))])
    connection.execute(f"UPDATE files SET mtime_ns = 0 WHERE item IN {LISTED}", (items,))
    return len(json.loads(items))


def _content_at(file: FileIO, place: int, item: int, form: Form) -> bytes | None:
    """The data of the record of an item; None if they are not as written."""
    file.seek(max(place, 0))
    head = file.read(_RECORD.size) or b""
    if len(head) < _RECORD.size:
        return None
    owner, length, total = _RECORD.unpack(head)
    if owner != item or not form.is_length(length) or length > os.fstat(file.fileno()).st_size:
        return None
    content = file.read(length) or b""
    return content if form.is_whole(item, content, total) else None
