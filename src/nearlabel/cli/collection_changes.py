"""Collections that are open for changes, as model files are in `open_models`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.options import Part
from nearlabel.cli.options.reading import LabelReading, check_unused, dividing_tags
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Item
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.indexing import IndexReport
    from nearlabel.collection.store_checks import CollectionCheck
    from nearlabel.common.arrays import Csr, Tree
    from nearlabel.common.progress import Progress
    from nearlabel.datasets import Dataset


class OpenCollection:
    """A collection that is open for changes.

    Attributes
    ----------
    path : str
    store : Collection
    """

    kind, label = "collection", "tag"
    separator = ";"  # of tags in a text

    def __init__(self, path: str, store: Collection, jobs: int | None) -> None:
        self.path, self.store, self._jobs = path, store, jobs

    @property
    def label_names(self) -> list[str]:
        """The names of the tags."""
        return [tag.name for tag in self.store.tags()]

    def add(self, data: str, part: Part, reading: LabelReading) -> tuple[IndexReport, ImportReport]:
        """Add files or rows, with their labels as tags."""
        import nearlabel as nl
        from nearlabel.collection.exchange.data_rows import tagged_items
        from nearlabel.collection.exchange.importing import ImportReport, import_files
        from nearlabel.collection.queries import named_items
        from nearlabel.datasets.picture_sets import is_picture_set

        store, kind = self.store, self.store.kind
        if kind == "vectors":
            return add_table(store, read_table(reading, data, part), data)
        check_unused(reading, data)
        if kind != "pictures" or not is_picture_set(data):
            return self._add_files(data), ImportReport()
        pictures = nl.datasets.load_pictures(data)
        report = self._add_files(str(pictures.pictures[0].parent))
        names = [path.name for path in pictures.pictures]
        ids = [named_items(store, [str(path)])[0].id for path in pictures.pictures]
        tagged = tagged_items(names, ids, pictures.Y, pictures.label_names)
        return report, import_files(store, tagged, group=report.group)

    def _add_files(self, source: str) -> IndexReport:
        """Add the files of a folder, or a single one."""
        from nearlabel.collection.indexing import plan_index, run_index

        if not Path(source).exists():
            raise ValueError(f"there is no file or folder {source}")
        real, kind = Path(os.path.realpath(source)), self.store.kind
        plan = plan_index(self.store, real)
        if real.is_file() and not (plan.scan.files or plan.scan.skipped):
            raise ValueError(f"{source}: {self.path} holds {kind}, and this is not one of them")
        with steps("adding", kind) as progress:
            report = run_index(self.store, plan, n_jobs=self._jobs, progress=progress)
        for path, reason in report.skipped:
            if real.is_file():
                raise ValueError(f"{source} {reason}")
            warnings.warn(f"{path} {reason}; left out", stacklevel=2)
        return report

    def forget(
        self, given: Sequence[str], listed: Sequence[str], source: str | None, ignore_missing: bool
    ) -> Tree:
        """Erase items for good, by their ids, names or files, some of them `listed` in a file."""
        from nearlabel.collection.folder_checks import NotInCollectionError

        items, missing = {}, 0
        for name in dict.fromkeys([*given, *listed]):
            try:
                (item,) = self._items([name], None if name in given else source)
                items[item.id] = item
            except NotInCollectionError:
                if not ignore_missing:
                    raise
                missing += 1
        if items:
            self.store.forget([*items])
        files = [Path(file.root, file.path) for item in items.values() for file in item.files]
        left = sum(map(Path.exists, files))
        return {"forgotten": len(items), "missing": missing, "files_left": left}

    def relabel(
        self, names: Sequence[str], source: str | None, Y: Csr, labels: Sequence[str] | None
    ) -> None:
        """Replace the tags of items; those that are removed count as rejected."""
        from nearlabel.collection.exchange.data_rows import label_sets

        columns = [*map(str, range(Y.shape[1]))] if labels is None else labels
        sets, items = label_sets(Y, columns), self._items(names, source)
        answers: list[tuple[int, str, bool]] = []
        for item, tags in zip(items, sets, strict=True):
            answers += [(item.id, name, False) for name in item.yes if name not in tags]
            answers += [(item.id, name, True) for name in tags]
        self.store.decide(answers)

    def edit(self, names: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> None:
        """Give items tags, and reject some."""
        answers = [*((name, True) for name in add), *((name, False) for name in remove)]
        items = self._items(names)
        self.store.decide([(item.id, name, answer) for item in items for name, answer in answers])

    def _items(self, names: Sequence[str], source: str | None = None) -> list[Item]:
        """Items that must be different ones; an error names the file that names them."""
        from nearlabel.collection.folder_checks import NotInCollectionError
        from nearlabel.collection.queries import named_items

        try:
            items = named_items(self.store, names)
        except NotInCollectionError as error:
            raise error if source is None else NotInCollectionError(f"{source}: {error}") from None
        if len(items) < len(names):
            raise ValueError(f"{source or '--item'}: two names are of the same item")
        return items

    def rewrite(self, **_: bool) -> None:
        """Rewrite the files without data that is no longer needed."""
        self.store.compact()

    def verify(self, progress: Progress) -> CollectionCheck:  # noqa: ARG002
        """Check everything: the database, all vectors, and the model."""
        return self.store.verify()

    def contents(self) -> Tree:
        """What the collection has now, for JSON."""
        counts = self.store.counts()
        return {"items": counts["items"], "tags": counts["tags"]}

    def notes(self, record: Tree) -> Iterator[str]:
        """What becomes of the files of forgotten items."""
        if left := record.get("files_left", 0):
            yield (
                f"files stay where they are ({counted(left, 'file')}): the next 'nearlabel index' "
                "adds them again as new items, unless you delete them or move them away"
            )


def read_table(reading: LabelReading, data: str, part: Part = "all") -> Dataset:
    """The rows of a table that may have no labels."""
    from nearlabel.datasets.table_columns import NoLabelsError

    reading = dividing_tags(reading, data, OpenCollection.separator)
    try:
        return reading.load(data, part)
    except NoLabelsError:
        return replace(reading, labels=()).load(data, part)


def add_table(store: Collection, rows: Dataset, data: str) -> tuple[IndexReport, ImportReport]:
    """Add the rows of a table to a collection of vectors, with their labels as tags."""
    from nearlabel.collection.exchange.data_rows import add_rows

    with steps("adding", "rows") as progress:
        return add_rows(store, rows, data, progress=progress)


def decided_record(tags: ImportReport) -> Tree:
    """The tags that the rows of a table have given, for JSON."""
    decisions = [{"id": decision.id, "tag": decision.tag} for decision in tags.kept]
    return {"given": tags.given, "kept": decisions, "problems": tags.problems}
