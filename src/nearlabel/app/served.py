"""A collection as shared by the requests of the service."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection, TagCount
from nearlabel.collection.item_features import Compute, item_features
from nearlabel.common.arrays import Matrix
from nearlabel.common.validation import check_n_jobs

_DECODED_AT_ONCE = 2  # pictures, each of which may take hundreds of megabytes


class Totals(NamedTuple):
    """The counts of a collection after a change."""

    change: int
    counts: dict[str, int]
    tags: list[TagCount]


class Served:
    """A collection, and what is computed once for all requests."""

    def __init__(self, collection: Collection, settings: ServiceSettings) -> None:
        self.collection, self.settings = collection, settings
        if not collection.readonly:
            collection.keep_uploads_in(settings.uploads)
        self.kind = collection.kind
        self.is_ready = False  # whether the first answer will be as fast as later ones
        self._computing = threading.BoundedSemaphore(check_n_jobs(-1))
        self._decoding = threading.BoundedSemaphore(_DECODED_AT_ONCE)
        self._making = threading.Lock()
        self._compute: Compute | None = None
        self._totals: Totals | None = None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """One state of the collection, and one of as many slots as there are cores.

        More computations at once would slow each other down.
        """
        with self._computing, self.collection.snapshot():
            yield

    def totals(self) -> Totals:
        """The numbers of items and tags, counted again after each change."""
        collection = self.collection
        with collection.snapshot(learned=False):
            change, totals = collection.last_change(), self._totals
            if totals is None or totals.change != change:
                counts = collection.counts()
                totals = self._totals = Totals(change, counts, collection.tags())
        return totals

    def vectors_of(self, contents: Iterable[bytes]) -> Matrix:
        """The vectors of pictures or texts, from the contents of their files."""
        with self._making:
            if self._compute is None:
                settings = self.collection.settings
                self._compute = item_features(settings.kind, settings.features)
        with self._decoding:
            return self._compute(contents)

    def thumbnail(self, id: int, size: int) -> bytes:
        """A thumbnail of an item, created on first use."""
        with self._decoding:
            return self.collection.thumbnail(id, size)

    def warm_up(self) -> None:
        """Load what the first request would otherwise wait for."""
        with suppress(Exception):  # requests report it
            with self.collection.snapshot():
                for id in self.collection.ids(limit=1):
                    self.collection.suggest(id)
                    self.collection.similar(id)
            self.totals()
            if self.kind != "vectors":
                self.vectors_of([_example(self.kind)])
        self.is_ready = True


def _example(kind: str) -> bytes:
    """The content of a file as input of the features."""
    if kind == "texts":
        return b"words"
    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (64, 64)).save(content, "JPEG")
    return content.getvalue()
