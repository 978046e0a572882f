"""relabel."""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.collection_changes import dividing_tags, relabel_items
from nearlabel.cli.model_changes import Changing, OpenModel, source_name
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.options import Data, Several, Texts
from nearlabel.cli.options.reading import LabelReading, is_table, label_names
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Array, Csr

Tags = Annotated[tuple[str, ...] | None, Several, Parameter(show_default=False)]


def relabel(
    model: str,
    data: Data | None = None,
    *,
    item: Texts = (),
    to: Tags = None,
    add: Tags = None,
    remove: Tags = None,
    changing: Changing = Changing(),
    reading: LabelReading = LabelReading(),
) -> int | None:
    """Change the labels of items in a model or a collection, which learns from them at once.

    The new labels replace the old ones, unless --add or --remove is used. DATA contains ids of
    items and their labels; its features are not read. Names unknown to the model become new
    labels. In a collection, a tag that is removed is never suggested again.

    Parameters
    ----------
    model
        Model file, as written by fit, or folder of a collection.
    item
        Ids of items, instead of DATA; for a collection also their names or files.
    to
        Labels of each --item: calm sad, or 'calm;sad' as in a cell of tags; "" for none. The name
        of an existing label is never split; in a collection, only ; separates tags.
    add
        Labels to add to those of each --item.
    remove
        Labels to remove from each --item.

    Examples
    --------
    nearlabel relabel songs.model corrected.csv
    nearlabel relabel songs.model corrected.csv --tags moods --id title
    nearlabel relabel songs.model --item "song 017" --to calm sad
    nearlabel relabel songs.model --item "song 017" --add calm --remove wild
    """
    given = [option for option in (to, add, remove) if option is not None]
    if given and not item:
        raise ValueError(
            "--to, --add and --remove need --item, the ids of items: --item 'song 017' --add calm"
        )
    if (data is None) == (not item):
        missing = "DATA is missing" if data is None else "--item cannot be combined with DATA"
        if data is None and not given and (changing.compact or changing.verify):
            only = (
                f"to verify only: nearlabel verify {model}"
                if changing.verify
                else f"to compact only: nearlabel forget {model} --compact"
            )
            raise ValueError(f"relabel: {missing}; {only}")
        raise ValueError(
            f"relabel: {missing}; for example: nearlabel relabel songs.model corrected.csv, "
            "or --item 'song 017' --to calm sad"
        )
    if item and not given:
        raise ValueError("--item needs --to, --add or --remove: --item 'song 017' --to calm sad")
    if to is not None and len(given) > 1:
        raise ValueError("--to replaces all labels: it cannot be combined with --add or --remove")
    if is_collection(model):
        return _relabel_items(model, data, item, (to, add, remove), changing, reading)
    source = None if data is None else source_name(data)
    with changing.opened(model, ids=source or "--item") as opened:
        if data is not None:
            names, Y, tags = _read(reading, data)
            ids = opened.known_ids(names, source)
        else:
            ids = opened.known_ids([*dict.fromkeys(item)])
            known = opened.model.label_names_
            there = set() if known is None else {str(name) for name in known}
            tags_of = partial(_tags, there, separator=reading.separator)
            Y, tags = (
                _edited(opened, ids, tags_of(add), tags_of(remove))
                if to is None
                else _all_with(tags_of(to), len(ids))
            )
        labels = opened.labels(Y, tags)
        with steps("relabelling") as progress:
            opened.model.relabel(ids, progress=progress, **labels)
        done = f"relabelled {counted(len(ids), 'item')}"
        return changing.finish(opened, done, relabelled=len(ids))


def _read(reading: LabelReading, data: str) -> tuple[list[str], Csr, list[str] | None]:
    """The ids of items in a file, their labels, and the names of these."""
    from nearlabel.common.messages import first_twice, shown

    in_table, source = is_table(data, reading.format), source_name(data)
    items = reading.load(data, features=())
    if items.row_names is None:
        raise ValueError(f"{source} has no ids of items: give their column with --id")
    ids = items.row_names.tolist()
    if (twice := first_twice(ids)) is not None:
        raise ValueError(f"{source} has two rows with the id {shown(twice)}")
    return ids, items.Y, label_names(items, source, in_table)


def _relabel_items(
    path: str,
    data: str | None,
    item: tuple[str, ...],
    given: tuple[tuple[str, ...] | None, ...],
    changing: Changing,
    reading: LabelReading,
) -> int | None:
    """Give items of a collection other tags."""
    from nearlabel.collection.exchange.tag_tables import SEPARATOR

    if data is not None:
        names, Y, tags = _read(dividing_tags(reading, data), data)
        every = [*map(str, range(Y.shape[1]))] if tags is None else tags
        ends = Y.indptr.tolist()
        sets = [
            [every[label] for label in Y.indices[start:stop].tolist()]
            for start, stop in pairwise(ends)
        ]
        return relabel_items(path, names, sets, (), (), changing)
    with open_collection(path, readonly=True) as store:
        there = {tag.name for tag in store.tags()}
    to, add, remove = (_tags(there, texts, reading.separator or SEPARATOR) for texts in given)
    return relabel_items(
        path, item, None if given[0] is None else [to] * len(item), add, remove, changing
    )


def _tags(there: Set[str], texts: tuple[str, ...] | None, separator: str | None) -> list[str]:
    """The labels named by an option, each once; names of existing labels are not split."""
    from nearlabel.common.tag_texts import tag_sets

    # Split like cells of a table, unless the model has a label of that name.
    cells = [(text,) if text in there else text for text in texts or ()]
    return sorted(set().union(*tag_sets(cells, separator)))


def _all_with(names: list[str], n: int) -> tuple[Csr, list[str]]:
    """Labels of n items that have just these."""
    import numpy as np
    from scipy import sparse

    return sparse.csr_array(np.ones((n, len(names)), dtype=np.int8)), names


def _edited(
    opened: OpenModel, ids: Array, added: list[str], removed: list[str]
) -> tuple[Csr, list[str]]:
    """The labels of items with some added and some removed, and their names."""
    import numpy as np
    from scipy import sparse

    from nearlabel.cli.model_items import label_name
    from nearlabel.common.messages import some

    model = opened.model
    names = [label_name(model, label) for label in range(opened.n_labels)]
    if unknown := [name for name in removed if name not in {*names}]:
        raise ValueError(f"--remove: {opened.path} has no label {some(unknown)}")
    if contradictory := [name for name in added if name in {*removed}]:
        raise ValueError(f"{some(contradictory)} is given with both --add and --remove")
    names += [name for name in added if name not in {*names}]
    place = {name: column for column, name in enumerate(names)}
    before = model._labels[model.items_.checked_places(ids)].tocoo()
    stays = ~np.isin(before.col, [place[name] for name in removed])
    new = np.array([place[name] for name in added], dtype=np.int64)
    rows = np.concatenate([before.row[stays], np.repeat(np.arange(len(ids)), len(new))])
    columns = np.concatenate([before.col[stays], np.tile(new, len(ids))])
    pairs = np.unique(np.stack([rows, columns]), axis=1)
    ones = np.ones(pairs.shape[1], dtype=np.int8)
    return sparse.csr_array((ones, pairs), shape=(len(ids), len(names))), names
