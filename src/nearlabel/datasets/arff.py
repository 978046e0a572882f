"""ARFF files as Mulan and MEKA distribute them: reading in one pass, and writing.

Mulan lists the labels in an XML file beside the ARFF file; in MEKA the name of the relation says
how many attributes are labels, and at which end. Labels are found by name and keep the order of the
ARFF file's columns: some XML files have another order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from xml.parsers import expat

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, row_entries
from nearlabel.common.files import replacing
from nearlabel.common.messages import first_twice, shown, some
from nearlabel.datasets.arff_rows import QUOTED, quoted, read_rows, unquoted, values_between_commas
from nearlabel.datasets.column_values import (
    Column,
    feature_matrix,
    known_values,
    label_matrix,
    named_columns,
    numbered,
    source_columns,
)
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset, dense_row, unlabeled
from nearlabel.datasets.text_lines import (
    LABEL_MARK,
    DataError,
    TextFile,
    column_names,
    names_or_numbers,
)

_SPLIT = "% split: "  # our own mark: runs of rows, e.g. "% split: train 1500, test 917"
_Runs = list[tuple[str, int]]


def read_arff(source: DataFile) -> Dataset:
    """Read an ARFF file; if nothing lists the labels, MEKA's header says which they are."""
    options, train_size = source.options, None
    labels = options.labels or _listed_labels(source)
    with source.text() as file:
        lines = file.lines()
        relation, columns, runs = _read_header(file, lines)
        names = [column.name for column in columns]
        known, ignore = set(names), named_columns("ignore", options.ignore, names)
        if labels is None:
            labels, train_size = _mekas_labels(file, relation, names, options.labels is None)
        elif options.labels:
            labels = named_columns("labels", labels, names)
        elif options.labels is not None:  # labels are found only to be left out
            labels = [name for name in labels if name in known]
        if unknown := [name for name in labels if name not in known]:
            raise ValueError(f"labels={some(unknown)}: no such attribute")
        cells = read_rows(file, lines, columns)
    carried = {*labels} - {*ignore}
    coded = known if options.nominal == "code" else set()
    if options.features is not None:  # their names show how they were encoded for the model
        coded, sources = set(options.features), source_columns(options.features, names)
        ignore += [name for name in names if name not in sources]
        for column in columns:  # the values that a model knows, but not the file
            if column.codes is not None:
                values = [*column.codes, *known_values(column.name, options.features)]
                column.codes = numbered(dict.fromkeys(values))

    def part(names: Collection[str]) -> tuple[list[Column], Csr | None]:
        places = [place for place, column in enumerate(columns) if column.name in names]
        return [columns[at] for at in places], None if cells is None else cells[:, places]

    X, features = feature_matrix(*part(known - {*labels, *ignore}), coded)
    Y, label_names = label_matrix(*part(carried)) if carried else (unlabeled(X.shape[0]), [])
    if all(name.startswith(LABEL_MARK) for name in label_names):
        label_names = [name.removeprefix(LABEL_MARK) for name in label_names]
    train = _train_mask(runs, train_size, X.shape[0])
    return Dataset(X, Y, column_names(label_names), column_names(features), train)


def _listed_labels(source: DataFile) -> Sequence[str] | None:
    """The labels from an XML file: a given one, or the one beside the ARFF file, if there is one.

    It has the same name, or the name without "-train" or "-test".
    """
    stems = (source.stem, re.sub(r"[-_](train|test)$", "", source.stem))
    listed = source.beside(*(stem + suffix for stem in stems for suffix in (".xml", ".xml.gz")))
    if source.options.xml is not None:
        listed = TextFile(source.options.xml, source.options.encoding)
    if listed is None:
        return None
    with listed:
        return read_labels(listed)


def _mekas_labels(
    file: TextFile, relation: str, names: list[str], needed: bool
) -> tuple[list[str], int | None]:
    """The labels from MEKA's header, and the size of the training part if given there."""
    labels = re.search(r"(?:^|\s)-C\s+(-?\d{1,9})(?=\s|$)", relation)
    if labels is None:
        if not needed:
            return [], None
        raise ValueError(
            "which attributes are labels? There is no XML file beside it, and no '-C number' "
            "in the name of its relation; pass labels= or xml="
        )
    count = int(labels[1])
    if abs(count) > len(names):
        raise file.error(f"the relation says -C {count}, but there are {len(names)} attributes", 1)
    split = re.search(r"(?:^|\s)-split-number\s+(\d{1,18})(?=\s|$)", relation)
    return names[:count] if count >= 0 else names[count:], None if split is None else int(split[1])


def _read_header(file: TextFile, lines: Iterator[str]) -> tuple[str, list[Column], _Runs]:
    """The relation, the attributes, and the runs of rows of our own split mark."""
    relation, runs = "", []
    columns: dict[str, Column] = {}
    for line in lines:
        text = line.strip()
        if text.startswith(_SPLIT):
            runs += _read_split(file, text)
        if not text or text.startswith("%"):
            continue
        keyword, *others = text.split(None, 1)
        keyword, rest = keyword.lower(), others[0] if others else ""
        if keyword == "@relation":
            relation = unquoted(rest)
        elif keyword == "@attribute":
            column = _attribute(file, rest)
            if column.name in columns:
                raise file.error(f"the attribute {shown(column.name)} is declared twice")
            columns[column.name] = column
        elif keyword == "@data":
            if not columns:
                raise file.error("@data comes before any @attribute")
            return relation, list(columns.values()), runs
        else:
            raise file.error(f"expected @relation, @attribute or @data; got {shown(text)}")
    raise file.error("the file ends before @data")


def _attribute(file: TextFile, text: str) -> Column:
    begin = re.match(rf"\s*({QUOTED}|[^\s{{}},'\"%][^\s{{}},]*)", text)
    if begin is None:
        raise file.error(f"@attribute needs a name and a type; got {shown(text)}")
    name, kind = unquoted(begin[1]), text[begin.end() :].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise file.error(f"the values of {shown(name)} do not end in '}}'")
        values = values_between_commas(kind[1:-1])
        if values is None or not values or len(set(values)) < len(values):
            raise file.error(f"the values of {shown(name)} must be unique and separated by ','")
        return Column(file, name, numbered(values))
    word = kind.partition(" ")[0].partition("[")[0].lower()
    if word in ("numeric", "real", "integer"):
        return Column(file, name)
    if word in ("string", "date"):
        return Column(file, name, is_text=True)
    raise file.error(
        f"the type of {shown(name)} must be numeric, real, integer, string, date or "
        f"{{value, …}}; got {shown(kind)}"
    )


def _read_split(file: TextFile, text: str) -> _Runs:
    runs = []
    for run in text.removeprefix(_SPLIT).split(","):
        part, _, count = run.strip().partition(" ")
        if part not in ("train", "test") or not re.fullmatch("[0-9]{1,12}", count):
            raise file.error(
                f"the split must have the form 'train 1500, test 917'; got {shown(run)}"
            )
        runs.append((part, int(count)))
    return runs


def _train_mask(runs: _Runs, train_size: int | None, n: int) -> Array | None:
    if runs:
        if sum(count for _, count in runs) != n:
            raise ValueError(f"its split does not cover its {n} rows")
        return np.repeat([part == "train" for part, _ in runs], [count for _, count in runs])
    if train_size is not None and 0 < train_size < n:
        return np.arange(n) < train_size
    return None


def read_labels(file: TextFile) -> list[str]:
    """Names of the labels in a Mulan XML file, of all levels if they form a hierarchy.

    Only elements and attributes are read: a document type, and with it every entity and every
    reference to another file, raises an error.
    """
    names: list[str] = []
    parser = expat.ParserCreate("utf-8", " ")  # lines are decoded already

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if tag == "label":
            if "name" not in attributes:
                raise file.error("a <label> without a name", parser.CurrentLineNumber)
            names.append(attributes["name"])
        elif tag != "labels":
            raise file.error(f"expected <labels> or <label>; got <{tag[:40]}>")

    def refuse(*_: object) -> None:
        raise file.error("a document type is not allowed in a label file")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        for line in file.lines():
            parser.Parse(line.encode())
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise file.error(
            f"this is not an XML list of labels: {expat.ErrorString(error.code)}",
            error.lineno,
        ) from None
    twice = first_twice(names)
    if twice is not None:
        raise DataError(file.name, None, f"the label {shown(twice)} is listed twice")
    return names


def write_arff(data: Dataset, path: Path) -> None:
    """Write a data set as ARFF, with the labels in an XML file beside it."""
    (n, d), q = data.X.shape, data.Y.shape[1]
    features = names_or_numbers(data.feature_names, d)
    labels = names_or_numbers(data.label_names, q)
    if set(labels) & set(features) or all(name.startswith(LABEL_MARK) for name in labels):
        labels = [LABEL_MARK + name for name in labels]
    beside = path.with_name(path.name.removesuffix(".arff") + ".xml")
    head = [f"@relation {quoted(path.stem)}"]
    if data.train is not None:
        runs = [(part, len([*run])) for part, run in groupby(data.train.tolist())]
        head.append(_SPLIT + ", ".join(f"{'train' if part else 'test'} {n}" for part, n in runs))
    head += [f"@attribute {quoted(name)} numeric" for name in features]
    head += [f"@attribute {quoted(name)} {{0,1}}" for name in labels]
    with replacing(beside) as xml, replacing(path) as file:  # both or neither
        xml.write(labels_xml(labels).encode())
        file.write(("\n".join([*head, "@data"]) + "\n").encode())
        for row in range(n):
            if sparse.issparse(data.X):
                pairs = [f"{column} {value!r}" for column, value in row_entries(data.X, row)]
                pairs += [f"{d + label} 1" for label, _ in row_entries(data.Y, row)]
                line = "{" + ",".join(pairs) + "}"
            else:
                line = ",".join(map(repr, dense_row(data, row)))
            file.write(f"{line}\n".encode())


def labels_xml(labels: list[str]) -> str:
    """The file that lists labels."""
    from xml.sax.saxutils import quoteattr

    for name in labels:
        if any((mark < " " and mark not in "\t\n\r") or mark in "\ufffe\uffff" for mark in name):
            raise ValueError(f"the label {shown(name)} cannot be written: XML does not allow it")
    start = '<?xml version="1.0" encoding="utf-8"?>\n'
    start += '<labels xmlns="http://mulan.sourceforge.net/labels">\n'
    lines = (f"<label name={quoteattr(name)}></label>\n" for name in labels)
    return start + "".join(lines) + "</labels>\n"
