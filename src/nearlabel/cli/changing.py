"""Changes to a model file or a collection: what add, forget and relabel share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from nearlabel.cli.collection_changes import OpenCollection
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.open_models import OpenModel, open_model
from nearlabel.cli.options import Jobs, Json, Switch
from nearlabel.cli.output import Paragraph, counted, render, steps

if TYPE_CHECKING:
    from nearlabel.collection.store_checks import CollectionCheck
    from nearlabel.common.arrays import Tree
    from nearlabel.methods.verification import Verification


@Parameter(name="*")
@dataclass(frozen=True)
class Changing:
    """How the changes of a model file or a collection are stored.

    Parameters
    ----------
    compact
        Rewrite the model file with all changes and without forgotten items. By default, changes
        are written to a journal next to it, MODEL.journal.
    refresh
        Learn everything again, including centers, rates and thresholds, which changes otherwise
        keep, and rewrite the model file.
    verify
        Recompute everything from the items, and compare.
    jobs
        Number of threads; by default that of fit; -1 for all cores.
    """

    compact: Switch = False
    refresh: Switch = False
    verify: Switch = False
    jobs: Jobs = None
    json: Json = False

    @contextmanager
    def opened(self, path: str) -> Iterator[OpenModel | OpenCollection]:
        """Open a model file or a collection."""
        if not is_collection(path):
            with open_model(path, self.jobs) as model:
                yield model
            return
        if self.refresh:
            raise ValueError("--refresh is only for model files: a collection is always up to date")
        with open_collection(path) as store:
            yield OpenCollection(path, store, self.jobs)

    @property
    def writes_anew(self) -> bool:
        """Whether the whole model file or collection is rewritten."""
        return self.compact or self.refresh

    def finish(self, opened: OpenModel | OpenCollection, done: str, **what: object) -> int | None:
        """Rewrite and verify if asked for, and report what was `done`; the exit code."""
        if self.writes_anew:
            opened.rewrite(compact=self.compact, refresh=self.refresh)
        verified = None
        if self.verify:
            with steps("verifying") as progress:
                verified = opened.verify(progress)
        record: Tree = {
            opened.kind: opened.path,
            **what,
            **opened.contents(),
            "verified": None if verified is None else verification_record(verified),
        }
        items = counted(record["items"], "item")
        labels = counted(record[f"{opened.label}s"], opened.label)
        text = [
            Paragraph(f"{done}: {opened.path} has {items} and {labels} now"),
            *map(Paragraph, opened.notes(record)),
            *([] if verified is None else [verification_text(verified)]),
        ]
        render(record, text, self.json)
        return None if verified is None or verified else 1


def verification_record(verified: Verification | CollectionCheck) -> Tree:
    """What was compared and what differs, for JSON."""
    return {"agrees": bool(verified), **asdict(verified)}


def verification_text(verified: Verification | CollectionCheck) -> Paragraph:
    """What was compared and what differs, for people."""
    return Paragraph(f"{'verified' if verified else 'not verified'}: {verified}")
