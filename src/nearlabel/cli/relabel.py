"""relabel."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.changing import Changing
from nearlabel.cli.options import Data, Several, Texts
from nearlabel.cli.options.reading import (
    LabelReading,
    dividing_tags,
    label_names,
    source_name,
)
from nearlabel.cli.output import counted

if TYPE_CHECKING:
    from nearlabel.common.arrays import Csr

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
    example = "--item 'song 017' --to calm sad"
    if given and not item:
        raise ValueError(f"--to, --add and --remove need --item, the ids of items: {example}")
    if item and not given:
        raise ValueError(f"--item needs --to, --add or --remove: {example}")
    if item and data is not None:
        raise ValueError("relabel: --item cannot be combined with DATA")
    if not item and data is None:
        example = f"nearlabel relabel songs.model corrected.csv, or {example}"
        raise ValueError(f"relabel: DATA is missing; for example: {example}")
    if to is not None and len(given) > 1:
        raise ValueError("--to replaces all labels: it cannot be combined with --add or --remove")
    import numpy as np
    from scipy.sparse import csr_array

    from nearlabel.common.messages import some

    source = None if data is None else source_name(data)
    with changing.opened(model) as opened:
        if data is not None:
            names, Y, labels = _read(dividing_tags(reading, data, opened.separator), data)
            opened.relabel(names, source, Y, labels)
        else:
            names = [*dict.fromkeys(item)]
            known, separator = {*opened.label_names}, reading.separator or opened.separator
            if to is not None:
                labels = _labels(known, to, separator)
                Y = csr_array(np.ones((len(names), len(labels)), dtype=np.int8))
                opened.relabel(names, source, Y, labels)
            else:
                added, removed = (_labels(known, texts, separator) for texts in (add, remove))
                if twice := [name for name in added if name in {*removed}]:
                    raise ValueError(f"{some(twice)} is given with both --add and --remove")
                opened.edit(names, added, removed)
        done = f"relabelled {counted(len(names), 'item')}"
        return changing.finish(opened, done, relabelled=len(names))


def _read(reading: LabelReading, data: str) -> tuple[list[str], Csr, list[str] | None]:
    """The ids of items in a file, their labels, and the names of these."""
    from nearlabel.common.messages import first_twice, shown

    source = source_name(data)
    items = reading.load(data, features=())
    if items.row_names is None:
        raise ValueError(f"{source} has no ids of items: give their column with --id")
    ids = items.row_names.tolist()
    if (twice := first_twice(ids)) is not None:
        raise ValueError(f"{source} has two rows with the id {shown(twice)}")
    return ids, items.Y, label_names(items, data, reading.format)


def _labels(known: Set[str], texts: tuple[str, ...] | None, separator: str | None) -> list[str]:
    """The labels named by an option, each once; names of existing labels are not split."""
    from nearlabel.common.tag_texts import tag_sets

    # Split like cells of a table, unless there is a label of that name.
    cells = [(text,) if text in known else text for text in texts or ()]
    return sorted(set().union(*tag_sets(cells, separator)))
