"""A collection as the service has it: what many requests share."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection, TagCount
from nearlabel.collection.item_features import ItemFeatures, item_features
from nearlabel.common.validation import check_n_jobs

_DECODED_AT_ONCE = 2  # pictures, each of which may take a few hundred megabytes


class Totals(NamedTuple):
    """What is counted of a collection, after a change."""

    change: int
    counts: dict[str, int]
    tags: list[TagCount]


class Served:
    """A collection, and what is made once for all requests.

    Attributes
    ----------
    collection : Collection
    settings : ServiceSettings
    kind : str
        What the items are.
    is_ready : bool
        Whether the first answer will be as fast as the others.
    """

    def __init__(self, collection: Collection, settings: ServiceSettings) -> None:
        self.collection, self.settings = collection, settings
        self.kind = collection.settings.kind  # which stays; each time it would be read anew
        self.is_ready = False
        self._computing = threading.BoundedSemaphore(check_n_jobs(-1))
        self._writing = threading.RLock()
        self._decoding = threading.BoundedSemaphore(_DECODED_AT_ONCE)
        self._making = threading.Lock()
        self._features: ItemFeatures | None = None
        self._totals: Totals | None = None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """One state of the collection, and a turn to compute: one for each core.

        More at once would slow each other down.
        """
        with self._computing, self.collection.snapshot():
            yield

    @contextmanager
    def writing(self) -> Iterator[Collection]:
        """The collection, for changes that belong together: nothing comes between them."""
        with self._writing:
            yield self.collection

    def totals(self) -> Totals:
        """How many items and tags there are; counted again after each change."""
        collection = self.collection
        with collection.snapshot(learned=False):
            change, totals = collection.last_change(), self._totals
            if totals is None or totals.change != change:
                counts = collection.counts(garbage=False)
                totals = self._totals = Totals(change, counts, collection.tags())
        return totals

    def features(self) -> ItemFeatures:
        """What makes vectors of pictures or texts."""
        with self._making:
            if self._features is None:
                settings = self.collection.settings
                self._features = item_features(settings.kind, settings.features)
            return self._features

    def vector_of(self, content: bytes) -> Any:
        """The vector of a picture or a text, by the content of its file."""
        features = self.features()
        with self._decoding:
            return features.vectors([content])

    def thumbnail(self, id: int, size: int) -> bytes:
        """A small picture of an item; made when it is first asked for."""
        with self._decoding:
            return self.collection.thumbnail(id, size)

    def warm_up(self) -> None:
        """Load what the first request would have to wait for."""
        with suppress(Exception):  # whoever asks is told
            with self.collection.snapshot():
                for id in self.collection.ids(limit=1):
                    self.collection.suggest(id)
                    self.collection.similar(id)
            self.totals()
            if self.kind != "vectors":
                self.vector_of(_example(self.kind))
        self.is_ready = True


def _example(kind: str) -> bytes:
    """The content of a file of a kind."""
    if kind == "texts":
        return b"words"
    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (64, 64)).save(content, "JPEG")
    return content.getvalue()
