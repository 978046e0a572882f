"""Labels given as tags: reading the tags of each row, and predictions in the same form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, canonical_csr
from nearlabel.common.messages import one_line, shown
from nearlabel.common.tag_texts import SEPARATORS, is_written_list, separated_tags, tag_separator

Tag = str | int
_ROWS = (list, tuple, set, frozenset, np.ndarray)
_KINDS = "a tag must be a string or an integer"
_AS_TAGS = "for tags, pass sets: [set(row) for row in y]"
_AS_MATRIX = "for a 0/1 matrix, pass rows of equal length that contain only 0 and 1"


class TagLists(list[object]):
    """Tags of many rows: a list that becomes a 1-d array of rows, whatever their lengths.

    scikit-learn's functions that concatenate predictions convert them to arrays.
    """

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.fromiter(self, object, len(self))


class TagForm(NamedTuple):
    """The form in which tags were given, and in which `predict` answers."""

    row: type  # list, tuple, set, frozenset or ndarray; str for strings with a separator
    is_array: bool  # whether the rows are in an array or a column of a table instead of a list
    separator: str | None = None  # between the tags of a string

    @classmethod
    def of_tree(cls, tree: Iterable[Any]) -> TagForm:
        """The form that `tree` was made from, or a ValueError."""
        name, is_array, separator = tree
        row = next((kind for kind in (*_ROWS, str) if kind.__name__ == name), None)
        if row is None or type(is_array) is not bool or (row is str) == (separator is None):
            raise ValueError("the form of its tags is unknown")
        if separator is not None:
            _check_separator(separator)
        return cls(row, is_array, separator)

    def tree(self) -> list[object]:
        """The form as plain values."""
        return [self.row.__name__, self.is_array, self.separator]

    def rows(self, decided: Csr, names: Array) -> TagLists | Array:
        """Label sets, shape (n, q), as tags in this form."""
        tags = names.tolist()
        lists = TagLists(
            self._row([tags[label] for label in decided.indices[start:stop].tolist()])
            for start, stop in zip(decided.indptr[:-1], decided.indptr[1:], strict=True)
        )
        return np.fromiter(lists, object, len(lists)) if self.is_array else lists

    def _row(self, tags: list[Any]) -> object:
        if self.separator is not None:
            return self.separator.join(tags)
        return np.fromiter(tags, object, len(tags)) if self.row is np.ndarray else self.row(tags)


class Tags(NamedTuple):
    """Rows of tags, each tag a str or an int, and the form in which they were given."""

    rows: list[list[Tag]]
    form: TagForm

    def names(self) -> Array:
        """All tags, integers first, each kind sorted."""
        tags = set(chain.from_iterable(self.rows))
        if not tags:
            raise ValueError("y contains no tags: at least one row must have one")
        for tag in tags:
            _check_tag(tag)
        return tag_array(sorted(tags, key=lambda tag: (isinstance(tag, str), tag)))

    def matrix_of(self, names: Array) -> tuple[Csr, list[Tag]]:
        """The 0/1 matrix with one column per name, and the tags that are not in `names`."""
        place = {tag: column for column, tag in enumerate(names.tolist())}
        return self.matrix(place, len(names))

    def matrix(self, place: Mapping[Tag, int], q: int) -> tuple[Csr, list[Tag]]:
        """The 0/1 matrix of q columns, with tags in their columns, and the tags without one."""
        tags = list(chain.from_iterable(self.rows))
        label = np.fromiter((place.get(tag, -1) for tag in tags), np.int32, len(tags))
        row = np.repeat(np.arange(len(self.rows)), list(map(len, self.rows)))
        known = label >= 0
        unknown = [] if known.all() else [*dict.fromkeys(tag for tag in tags if tag not in place)]
        ones = np.ones(np.count_nonzero(known), np.int8)
        shape = (len(self.rows), q)
        matrix = canonical_csr(sparse.csr_array((ones, (row[known], label[known])), shape=shape))
        matrix.data[:] = 1  # a tag that a row has twice was summed
        return matrix, unknown


def _check_tag(tag: Tag) -> None:
    """Raise an error for a tag that cannot be saved."""
    if isinstance(tag, int):
        if tag.bit_length() > 1024:
            raise ValueError("y contains a tag that is an integer of more than 1024 bits")
        return
    try:
        tag.encode()
    except UnicodeEncodeError:
        raise ValueError(f"y contains a tag with an unpaired surrogate: {shown(tag)}") from None


def tag_array(tags: Sequence[Any]) -> Array:
    """Tags as an array: of strings if it keeps them unchanged, else of objects."""
    tags = [_plain(tag) for tag in tags]
    if all(isinstance(tag, str) and not tag.endswith("\0") for tag in tags):
        longest = max(map(len, tags), default=0)  # each takes as much memory as the longest
        if longest < 200 or longest * len(tags) < 2**26:
            return np.array(tags, dtype=np.str_)
    return np.fromiter(tags, object, len(tags))


def _plain(tag: Any) -> Any:
    """A tag of any subclass of str or int as a plain one; anything else unchanged."""
    tag = tag.item() if isinstance(tag, np.generic) else tag
    if isinstance(tag, str):
        return str.__str__(tag)
    return int(tag) if isinstance(tag, int) and not isinstance(tag, bool) else tag


def read_tags(
    y: object, separator: str | None = None, name: str = "y", numbered: int | None = None
) -> Tags | None:
    """The tags of y if it holds the tags of each row; None if it is something else.

    Parameters
    ----------
    y : object
        A list, array or column of lists, tuples, sets or arrays of tags, or of strings with a
        separator; or an array of strings, shape (n, m). Tags are str or int.
    separator : str, optional
        The separator between the tags of a string.
    name : str, default="y"
        The name of y in messages.
    numbered : int, optional
        The number of labels, if some are known to be integers: then lists of integers are tags
        unless they can be the rows of a 0/1 matrix with that many columns.

    Raises
    ------
    ValueError
        If y is ambiguous: tags or something else.
    """
    rows = _listed(y)
    if rows is None:
        if separator is not None:
            raise ValueError(f"separator={separator!r}: {name} must be a 1-d column of strings")
        return None
    is_array = not isinstance(y, list | tuple)
    first = next((row for row in rows if not is_gap(row)), None)
    if isinstance(first, str):
        return _read_texts(rows, separator, is_array, name)
    if separator is not None:
        message = f"{name} must contain strings; got {_said(first)}"
        raise ValueError(f"separator={separator!r}: {message}")
    if not isinstance(first, _ROWS):
        return None
    rows = [[] if is_gap(row) else row for row in rows]
    for at, row in enumerate(rows):
        if not isinstance(row, _ROWS) or (isinstance(row, np.ndarray) and row.ndim != 1):
            message = f"a list of tags per row; row {at} is {_said(row)}"
            raise ValueError(f"{name} must contain {message}")
    listed = [_tags_of(row, at, name) for at, row in enumerate(rows)]
    if None in listed:  # a row of floats or booleans
        _refuse_other_than_a_matrix(rows, listed.index(None), name)
        return None
    table = [row for row in listed if row is not None]
    are_tags = isinstance(y, TagLists) or any(isinstance(row, set | frozenset) for row in rows)
    if numbered is not None:
        are_tags = are_tags or {len(row) for row in table} != {numbered}
    if not are_tags and _is_matrix(table, name):
        return None
    row = next(kind for kind in _ROWS if isinstance(first, kind))
    return Tags(table, TagForm(row, is_array))


def holds_texts(y: object) -> bool:
    """Whether y is a column of strings."""
    rows = _listed(y) or ()
    is_text = [isinstance(row, str) for row in rows]
    return any(is_text) and all(is_text[at] or is_gap(row) for at, row in enumerate(rows))


def _listed(y: Any) -> list[Any] | None:
    """The rows of y if it is 1-d, or the lists of strings of a 2-d array."""
    if isinstance(y, Set | Mapping):
        kind = type(y).__name__
        raise TypeError(f"y must be a list with one entry per row; got an unordered {kind}")
    if isinstance(y, list | tuple):
        return list(map(_as_row, y))
    if sparse.issparse(y):
        return None
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and hasattr(y, "columns"):  # a DataFrame
        if shape[1] != 1:
            return None
        y = y[y.columns[0]]
    if len(shape) == 2 and isinstance(y, np.ndarray):
        texts = y.dtype.kind in "UOT" and y.size and all(isinstance(tag, str) for tag in y.flat)
        if texts and shape[1] == 1 and any(mark in text for mark in SEPARATORS for text in y.flat):
            return list(y[:, 0].tolist())
        return [list(row) for row in y.tolist()] if texts else None
    if not hasattr(y, "__len__") or not hasattr(y, "__iter__") or isinstance(y, str | bytes):
        return None
    if getattr(getattr(y, "dtype", None), "kind", "O") in "biufc":
        return None
    return list(map(_as_row, y))


def _as_row(row: Any) -> Any:
    """A row of tags in a known form: polars gives the rows of a column of lists as Series."""
    if isinstance(row, (str, bytes, *_ROWS)):
        return row
    if hasattr(row, "to_list"):
        return row.to_list()
    return list(row) if isinstance(row, Sequence | Set) else row


def stacked_rows(y: Any) -> Any:
    """A column of lists that are not tags as the matrix with these rows; else y unchanged."""
    if len(getattr(y, "shape", ())) != 1:
        return y
    rows = _listed(y)
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return y
    return np.array([list(row) for row in rows])


def _read_texts(rows: list[Any], separator: str | None, is_array: bool, name: str) -> Tags | None:
    """Strings of tags with a separator, or None if they are two classes."""
    for at, row in enumerate(rows):
        if not (isinstance(row, str) or is_gap(row)):
            if separator is None and not isinstance(row, _ROWS):
                return None  # classes of several types
            raise ValueError(
                f"{name} must contain only strings, like row 0; row {at} is {_said(row)}"
            )
    texts = ["" if is_gap(row) else row for row in rows]
    written = next((text for text in texts if is_written_list(text)), None)
    if written is not None:
        raise ValueError(
            f"{name} contains lists that were converted to strings, such as {shown(written)}: "
            "convert them back, [ast.literal_eval(row) for row in y]"
        )
    if separator is None:
        separator = tag_separator(texts)
        if separator is None:
            return None
        marks = [mark for mark in SEPARATORS if any(mark in text for text in texts)]
        if len(marks) > 1 or len(set(texts)) < 3:
            raise ValueError(
                f"{name} contains strings with {' and '.join(map(repr, marks))}, which may be tags "
                f"or the names of two classes: for tags, pass the separator, fit(…, "
                f"separator={separator!r}); for classes, pass 0 and 1"
            )
    _check_separator(separator)
    table: list[list[Tag]] = [[*separated_tags(text, separator)] for text in texts]
    return Tags(table, TagForm(str, is_array, separator))


def _check_separator(separator: object) -> None:
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be a string such as ';'; got {separator!r}")


def is_gap(value: object) -> bool:
    """Whether a value is missing, as in an empty cell of a table, in any library's notation."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def _tags_of(row: Any, at: int, name: str) -> list[Tag] | None:
    """The tags of a row as plain objects; None if it has numbers that cannot be tags."""
    row = row.tolist() if isinstance(row, np.ndarray) else row
    if set(map(type, row)) <= {str, int}:
        return [tag for tag in row if tag != ""]  # "".split(";") gives [""]: no tag
    tags = []
    for tag in row:
        plain = _plain(tag)
        if isinstance(plain, bool | float):
            if isinstance(plain, float) and np.isnan(plain):
                raise ValueError(f"{name} has a missing tag: row {at} has {_said(tag)}")
            return None
        if not isinstance(plain, str | int):
            raise ValueError(f"{_KINDS}; row {at} of {name} has {_said(tag)}")
        if plain != "":
            tags.append(plain)
    return tags


def _refuse_other_than_a_matrix(rows: list[Any], odd: int, name: str) -> None:
    """Raise an error if one row has numbers that cannot be tags, unless all can be a matrix."""
    has_texts = any(isinstance(tag, str) for row in rows for tag in row)
    if has_texts or len(set(map(len, rows))) > 1:
        wrong = next(tag for tag in rows[odd] if isinstance(tag, bool | float | np.generic))
        raise ValueError(f"{_KINDS}; row {odd} of {name} has {_said(wrong)}")


def _said(value: object) -> str:
    """A value in a message: quoted only if it is a string."""
    return shown(value) if isinstance(value, str) else one_line(repr(value), 40)


def _is_matrix(table: list[list[Tag]], name: str) -> bool:
    """Whether lists are the rows of a 0/1 matrix; a ValueError if they may be that or tags."""
    values = set(chain.from_iterable(table))
    same_length = len(set(map(len, table))) == 1
    if same_length and values and values <= {0, 1}:
        return True
    if values and values <= {0, 1, "0", "1"}:
        raise ValueError(
            f"{name} contains rows of {_some(values)} that may be a 0/1 matrix or tags: "
            f"{_AS_MATRIX}; {_AS_TAGS}"
        )
    if same_length and values and not any(isinstance(tag, str) for tag in values):
        raise ValueError(
            f"{name} contains rows of {len(table[0])} integers, such as {_some(values)}, that may "
            f"be a matrix or tags: {_AS_MATRIX}; {_AS_TAGS}"
        )
    return False


def _some(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(repr, values))[:3])
