"""The role of each column of a table: a feature, a label, or another field of a row.

Some columns have a special role, by name or by an option: ``tags`` (the labels of a row in one
cell), ``label:NAME`` (one label, 0 or 1), ``id`` (the name of a row), ``split`` ("train" or
"test").
"""

from __future__ import annotations

from collections.abc import Sequence

from nearlabel.common.messages import first_twice, shown, some
from nearlabel.datasets.column_values import named_columns, no_column, source_columns
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.dataset import Dataset, dense_row
from nearlabel.datasets.text_lines import LABEL_MARK, DataError, Source, names_or_numbers

FEATURE_MARK = "feature:"  # before a feature whose name would mean something else


class NoLabelsError(DataError):
    """A table in which no column looks like labels, and no option names any."""


class ColumnRoles:
    """The roles of the columns of a table: the names of labels and categories, and positions."""

    def __init__(self, file: Source, columns: list[str], options: ReadOptions) -> None:
        self._file, self._columns, self._options = file, columns, options
        self.features = frozenset(options.features or ())  # those that a model knows
        self._places = {name: place for place, name in reversed([*enumerate(columns)])}
        features, plain = options.features, {name.removeprefix(FEATURE_MARK) for name in columns}
        known = None if features is None else source_columns(features, plain)
        if features is not None and options.frame:  # each column of a frame is a feature
            known = {*features}
        twice = first_twice(name for name in columns if known is None or name in known)
        if twice is not None:
            raise file.error(f"two columns have the name {shown(twice)}")
        self._ignored = frozenset(named_columns("ignore", options.ignore, columns))
        labels, tags = self._find_labels()
        if options.labels is not None and not options.labels:  # found only to be left out
            self._ignored |= {*labels, *([tags] if tags else [])}
            labels, tags = [], None
        self.labels = frozenset(labels)
        self.tags = self._place("tags", tags)
        self.id = self._place("id", options.id or self._named("id"))
        # The index that pandas writes, possibly more than once, names the rows.
        wanted = {*(known or ()), *(options.labels or ()), *options.categories}
        if columns[0] in ("", "Unnamed: 0") and columns[0] not in wanted:
            self._ignored |= {columns[0]} if self.id is not None else frozenset()
            self.id = 0 if self.id is None else self.id
        self.split = self._place("split", self._named("split"))
        self.texts = [self._places[name] for name in self._features_named("text", options.text)]
        for name in (columns[place] for place in self.texts):
            if self._places[name] == self.tags or name in self.labels | self._ignored:
                raise file.error(f"text={shown(name)}: the column is not a feature")
        self.categories = frozenset(self._features_named("categories", options.categories))
        self.cells = self._find_cells(known)  # the positions of the other features, and of labels

    @property
    def fields(self) -> tuple[int | None, int | None, int | None]:
        """The positions of the fields other than features: tags, name and split."""
        return self.tags, self.id, self.split

    @property
    def needed(self) -> set[int]:
        """The positions of all columns that are read."""
        fields = {place for place in self.fields if place is not None}
        return fields.union(self.cells, self.texts)

    def _find_labels(self) -> tuple[list[str], str | None]:
        """The columns that are labels, and the one with all labels in one cell."""
        options = self._options
        if options.tags is not None or options.labels:
            labels = named_columns("labels", options.labels or (), self._columns)
            return labels, options.tags
        marked = [name for name in self._columns if name.startswith(LABEL_MARK)]
        tags = self._named("tags") or self._named("labels")
        if not marked and tags is None and options.labels is None:
            raise NoLabelsError(
                self._file.name,
                self._file.line,
                f"which columns are labels? There is no column 'tags' among {some(self._columns)}; "
                "pass tags= for a column of tags, or labels= for columns of 0 and 1",
            )
        return marked, None if marked else tags

    def _features_named(self, what: str, names: Sequence[str]) -> list[str]:
        """The features that an option names; those missing for a model are reported together."""
        if self._options.features is None:
            return named_columns(what, names, self._columns)
        return [name for name in names if name in self._places]

    def _find_cells(self, known: set[str] | None) -> list[int]:
        """The positions of the other features, and of labels with their own column."""
        special = {self.tags, self.id, self.split, *self.texts}
        places = []
        for place, column in enumerate(self._columns):
            if place in special or column in self._ignored:
                continue
            is_label = column in self.labels
            if known is None or is_label or column.removeprefix(FEATURE_MARK) in known:
                places.append(place)
            marked = column.lower() in ("tags", "labels") or column.startswith(LABEL_MARK)
            if known is None and marked and not is_label:
                raise self._file.error(
                    f"the column {shown(column)} also looks like labels; pass it to ignore= to "
                    "leave it out"
                )
        wanted = self._options.features
        if not places and not self.texts and wanted != ():
            missing = f"column for the feature {some(wanted)}" if wanted else "feature column"
            raise self._file.error(f"there is no {missing}")
        return places

    def _named(self, word: str) -> str | None:
        named = (name for name in self._columns if name.lower() == word)
        return next((name for name in named if name not in self._ignored), None)

    def _place(self, what: str, name: str | None) -> int | None:
        """The position of a column that an option names."""
        if name is None or name in self._places:
            return None if name is None else self._places[name]
        raise ValueError(no_column(what, name, self._columns))


def written_columns(data: Dataset) -> list[str]:
    """The columns of a data set as a table, one per label, with marks as far as they are needed."""

    def marked(name: str) -> str:
        special = name.lower() in ("", "id", "split", "tags", "labels", "unnamed: 0")
        is_marked = name.startswith((LABEL_MARK, FEATURE_MARK)) or name != name.strip()
        return FEATURE_MARK + name if special or is_marked else name

    features = [marked(name) for name in names_or_numbers(data.feature_names, data.X.shape[1])]
    labels = [LABEL_MARK + name for name in names_or_numbers(data.label_names, data.Y.shape[1])]
    has_name, has_split = data.row_names is not None, data.train is not None
    return [*(["id"] * has_name), *(["split"] * has_split), *features, *labels]


def written_row(data: Dataset, row: int) -> list[object]:
    """The cells of a row; None for a missing value."""
    cells: list[object] = [] if data.row_names is None else [str(data.row_names[row])]
    if data.train is not None:
        cells.append("train" if data.train[row] else "test")
    return cells + dense_row(data, row)
