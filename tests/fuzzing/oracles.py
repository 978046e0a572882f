"""Independent readers of the same text, whose results must agree."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import arff
import numpy as np
from sklearn.datasets import load_svmlight_file

from fuzzing.answers import dense
from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_parser import FLAT, PATHS, SLASHED
from nearlabel.datasets import Dataset
from nearlabel.datasets.text_lines import names_or_numbers, truth


def plain_text(content: bytes) -> str:
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    for encoding in ("utf-32", "utf-16"):  # one byte-order mark is a prefix of the other
        for order in ("le", "be"):
            if content.startswith("\ufeff".encode(f"{encoding}-{order}")):
                return content.decode(encoding)
    return content.removeprefix(b"\xef\xbb\xbf").decode()


Cells = dict[str, list[Any]]


def assert_cells(data: Dataset, features: Cells, labels: Cells) -> None:
    """Compare with the cells of columns: numbers, nominal values, and words for yes and no."""
    names = names_or_numbers(data.feature_names, data.X.shape[1])
    for name, values in zip(names, dense(data.X).T.tolist(), strict=True):
        if name in features:
            assert values == [_number(cell) for cell in features[name]], name
            continue
        column = max((one for one in features if name.startswith(f"{one}=")), key=len)
        value = name.removeprefix(f"{column}=")
        assert values == [str(cell).strip() == value for cell in features[column]], name
    names = names_or_numbers(data.label_names, data.Y.shape[1])
    for name, values in zip(names, dense(data.Y).T.tolist(), strict=True):
        if labels:  # otherwise they are in a column of tags
            assert values == [_number(cell) for cell in labels[name]], name


def assert_table(data: Dataset, names: list[str], rows: list[list[Any]]) -> None:
    """Compare with a table whose names say what is a feature and what is a label."""
    cells = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    marked = {name.removeprefix("label:"): cells[name] for name in names if name[:6] == "label:"}
    assert_cells(data, {n.removeprefix("feature:"): c for n, c in cells.items()}, marked)
    tags = next((n for word in ("tags", "labels") for n in names if n.lower() == word), None)
    if tags is not None and not marked:
        assert_tags(data, cells[tags])


def _number(cell: Any) -> float:
    """A number, perhaps with a decimal comma, or a word for yes or no."""
    if not isinstance(cell, str):
        return float(cell)
    said = truth(cell)
    return float(cell.replace(",", ".")) if said is None else float(said)


def assert_tags(data: Dataset, cells: list[Any]) -> None:
    texts = [cell for cell in cells if isinstance(cell, str)]
    mark = next((mark for mark in ";|," if any(mark in text for text in texts)), "\0")
    names = names_or_numbers(data.label_names, data.Y.shape[1])
    for row, cell in zip(dense(data.Y), cells, strict=True):
        parts = set(cell) if isinstance(cell, list) else {tag.strip() for tag in cell.split(mark)}
        assert {names[column] for column in np.flatnonzero(row)} == parts - {
            "" if isinstance(cell, str) else None
        }


def oracle_arff(data: Dataset, content: bytes) -> None:
    """By liac-arff, without what the two readers deliberately treat differently.

    Escapes: liac knows \\u and octal ones. Quotes in names: liac takes all of them off the ends,
    and has no tab before a name. Whole numbers: liac cuts off the fraction of an ``integer``.
    """
    text = plain_text(content)
    if "\\" in text or re.search(r"(?i)integer|@attribute[^ ]", text):
        return
    try:
        told = arff.loads(text, encode_nominal=False)
    except Exception:  # liac raises many kinds of errors
        return
    columns = list(map(list, zip(*told["data"], strict=True)))
    cells = {name: column for (name, _), column in zip(told["attributes"], columns, strict=True)}
    ours = [*_names(data.feature_names), *_names(data.label_names)]
    if not any(mark in name for mark in "'\"" for name in [*cells, *ours]):
        assert_cells(data, cells, cells)


def _names(names: Any) -> list[str]:
    return [] if names is None else names.tolist()


def oracle_csv(data: Dataset, content: bytes) -> None:
    text = plain_text(content)
    first, _, rest = text.partition("\n")
    told = re.fullmatch(r'("?)sep=(.)\1\s*', f"{first}\n", re.IGNORECASE)
    text = rest if told else text
    head = "".join(text.partition("\n")[0].split('"')[::2])
    lines = [line + "\n" for line in text.split("\n")]
    reader = csv.reader(lines, delimiter=told[2] if told else max(",;\t|", key=head.count))
    header, *rows = (row for row in reader if row)
    marks = ("label:", "feature:")
    assert_table(data, [n if n.startswith(marks) else n.strip() for n in header], rows)


def oracle_jsonl(data: Dataset, content: bytes) -> None:
    rows = [json.loads(line) for line in plain_text(content).split("\n") if line.strip()]
    header = rows.pop(0) if "nearlabel" in rows[0] else {}
    if not header and not isinstance(rows[0].get("features"), list | dict):
        names = list(rows[0])
        assert_table(data, names, [[row[name] for name in names] for row in rows])
        return
    if data.X.shape[1] < 1000:
        names = names_or_numbers(data.feature_names, data.X.shape[1])
        for vector, row in zip(dense(data.X).tolist(), rows, strict=True):
            told = row["features"]
            cells = told if isinstance(told, list) else [told.get(name, 0) for name in names]
            assert vector == [float(cell) for cell in cells]
    if 0 < data.Y.shape[1] < 1000:
        assert_tags(data, [row.get("labels", row.get("tags")) for row in rows])


def oracle_json(data: Dataset, content: bytes) -> None:
    rows = json.loads(plain_text(content))
    oracle_jsonl(data, "\n".join(map(json.dumps, rows)).encode())


def oracle_sparse(data: Dataset, content: bytes) -> None:
    """By scikit-learn's reader, which skips rows without labels and features, and comments."""
    head, _, rest = plain_text(content).partition("\n")
    d = int(head.split()[1])
    lines = rest.split("\n")[: len(data)]
    if d > 1000 or data.Y.shape[1] > 1000 or not all(map(str.strip, lines)):
        return
    try:
        X, tags = load_svmlight_file(
            io.BytesIO("\n".join(lines).encode()), n_features=d, multilabel=True, zero_based=True
        )
    except ValueError:  # it wants columns in order
        return
    assert np.array_equal(X.toarray(), dense(data.X))
    assert [np.flatnonzero(row).tolist() for row in dense(data.Y)] == [sorted(t) for t in tags]


def rest_of_xmp(content: bytes) -> list[object]:
    """An XMP document without its keywords and blanks, by ElementTree."""
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    root = ElementTree.fromstring(content, ElementTree.XMLParser(target=builder))
    names = [f"{{{one.space}}}{one.local}" for one in (FLAT, PATHS, SLASHED)]
    found: list[object] = []

    def visit(node: ElementTree.Element) -> None:
        others = sorted((name, text) for name, text in node.attrib.items() if name not in names)
        found.append((str(node.tag), others))
        add(node.text)
        for child in node:
            if child.tag not in names:
                visit(child)
            add(child.tail)
        found.append("end")

    def add(text: str | None) -> None:
        found.extend((text or "").split())

    visit(root)
    return found


def oracle_xmp(document: XmpDocument, content: bytes) -> None:
    """One tag more and one less; by ElementTree, which does not support "}" in a namespace."""
    before = document.keywords().all_tags()
    try:
        made = document.with_tags(["A|B", "7"], before[:1])
    except ValueError as error:
        if "cannot be edited safely" not in str(error):
            raise
        return
    if made is None or not document.parsed.node:  # then one is made
        return
    after = XmpDocument(made).keywords().all_tags()
    assert after == [*before[1:], *(tag for tag in ("A|B", "7") if tag not in before)]
    assert XmpDocument(made).with_tags(["7"], before[:1]) is None
    try:
        rest = rest_of_xmp(content)
    except (ElementTree.ParseError, ValueError, LookupError):  # an encoding that it does not know
        return
    assert b"}" in content or rest_of_xmp(made) == rest


def oracle_xml(names: list[str], content: bytes) -> None:
    """By ElementTree, which does not support "}" in the name of a namespace."""
    text = plain_text(content)
    if "}" not in text:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(encoding="utf-8"))
        elements = [one for one in root.iter() if one.tag.rpartition("}")[2] == "label"]
        assert names == [one.get("name") for one in elements]
