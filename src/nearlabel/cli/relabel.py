"""relabel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.model_changes import Changing, OpenModel, source_name
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
        The labels that each --item gets: calm sad, or 'calm;sad' as in a cell of tags; "" for
        none. The name of a label that the model has is never divided.

    Examples
    --------
    nearlabel relabel songs.model corrected.csv
    nearlabel relabel songs.model corrected.csv --tags moods --id title
    nearlabel relabel songs.model --item "song 017" --to calm sad
    """
    if (data is None) == (not item):
        missing = "DATA is missing" if data is None else "--item cannot be given beside DATA"
        if data is None and to is None and (changing.compact or changing.verify):
            only = "--compact --verify" if changing.verify else "--compact"
            raise ValueError(
                f"relabel: {missing}; to compact only: nearlabel forget {model} {only}"
            )
        raise ValueError(f"relabel: {missing}; {_EXAMPLE}, or --item 'song 017' --to calm sad")
    if bool(item) != (to is not None):
        raise ValueError("--item and --to go together: --item 'song 017' --to calm sad")
    source = None if data is None else source_name(data)
    with changing.opened(model, ids=source or "--item") as opened:
        names, Y, tags = (
            _typed(opened, item, to or (), reading.separator)
            if data is None
            else _read(reading, data)
        )
        ids, labels = opened.known_ids(names, source), opened.labels(Y, tags)
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
        raise ValueError(f"{source} has no ids of items: give --id, the column that has them")
    ids = items.row_names.tolist()
    if (twice := first_twice(ids)) is not None:
        raise ValueError(f"{source} has two rows with the id {shown(twice)}")
    return ids, items.Y, label_names(items, source, in_table)


def _typed(
    opened: OpenModel, item: tuple[str, ...], to: tuple[str, ...], separator: str | None
) -> tuple[list[str], Csr, list[str]]:
    """The ids of items, the labels that all of them get, and the names of these."""
    import numpy as np
    from scipy import sparse

    from nearlabel.datasets import Dataset
    from nearlabel.datasets.row_fields import RowFields
    from nearlabel.datasets.text_lines import TextFile

    known = opened.model.label_names_
    there = set() if known is None else {str(name) for name in known}
    # As cells of a table are, unless the model has a label of that name.
    cells = RowFields(TextFile("--to"), separator, for_model=True)
    for text in to:
        cells.add([text] if text in there else text, None, None)
    nothing = np.empty((len(to), 0))
    given = cells.finish(Dataset(nothing, sparse.csr_array(nothing, dtype=np.int8)))
    names = label_names(given, "--to", in_table=True) or []
    ids = [*dict.fromkeys(item)]
    Y = sparse.csr_array(np.ones((len(ids), len(names)), dtype=np.int8))
    return ids, Y, names
