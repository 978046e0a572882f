"""relabel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.model_changes import Changing, OpenModel
from nearlabel.cli.options import Data, Several, Texts
from nearlabel.cli.options.reading import LabelReading, is_table, label_names
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.common.arrays import Csr

_EXAMPLE = "for example: nearlabel relabel songs.model corrected.csv"


def relabel(
    model: str,
    data: Data | None = None,
    *,
    item: Texts = (),
    to: Annotated[tuple[str, ...] | None, Several, Parameter(show_default=False)] = None,
    changing: Changing = Changing(),
    reading: LabelReading = LabelReading(),
) -> int | None:
    """Give items of a model other labels, from which it learns at once.

    They replace those that the items have. DATA has the ids of items and their labels; features in
    it are not looked at. Names that the model does not know become new labels.

    Parameters
    ----------
    model
        Model file, as fit writes it.
    item
        Ids of items, instead of DATA.
    to
        The labels that each --item gets; "" for none.

    Examples
    --------
    nearlabel relabel songs.model corrected.csv
    nearlabel relabel songs.model corrected.csv --tags moods --id title
    nearlabel relabel songs.model --item "song 017" --to calm sad
    """
    if (data is None) == (not item):
        missing = "DATA is missing" if data is None else "--item cannot be given beside DATA"
        raise ValueError(f"relabel: {missing}; {_EXAMPLE}, or --item 'song 017' --to calm sad")
    if bool(item) != (to is not None):
        raise ValueError("--item and --to go together: --item 'song 017' --to calm sad")
    with changing.opened(model, ids=data or "--item") as opened:
        names, Y, tags = _typed(opened, item, to or ()) if data is None else _read(reading, data)
        ids, labels = opened.ids(names), opened.labels(Y, tags)
        with steps("relabelling") as progress:
            opened.model.relabel(ids, progress=progress, **labels)
        done = f"relabelled {counted(len(ids), 'item')}"
        return changing.finish(opened, done, relabelled=len(ids))


def _read(reading: LabelReading, data: str) -> tuple[list[str], Csr, list[str] | None]:
    """The ids of items in a file, their labels, and the names of these."""
    in_table = is_table(data, reading.format)
    items = reading.load(data, features=())
    if items.row_names is None:
        raise ValueError(f"{data} has no ids of items: give --id, the column that has them")
    return items.row_names.tolist(), items.Y, label_names(items, data, in_table)


def _typed(
    opened: OpenModel, item: tuple[str, ...], to: tuple[str, ...]
) -> tuple[list[str], Csr, list[str]]:
    """The ids of items, the labels that all of them get, and the names of these."""
    import numpy as np
    from scipy import sparse

    known = opened.model.label_names_
    there = set() if known is None else {str(name) for name in known}
    # As in a table, ; divides labels, unless the name of one has it.
    parts = [part for text in to for part in ([text] if text in there else text.split(";"))]
    names = [*dict.fromkeys(filter(None, map(str.strip, parts)))]
    Y = sparse.csr_array(np.ones((len(item), len(names)), dtype=np.int8))
    return [*item], Y, names
