"""Fuzzing of everything that reads a file: seeds, mutations, and what must hold of every input.

A target takes bytes and says whether they were read (True) or refused (False). Anything but a right
answer or a clean error (of the two documented kinds, one printable line that begins with the file's
name) is raised: another exception, a warning, two seconds of computing, a blow-up of memory, an
answer that breaks its own contract, that does not survive being written and read again, or that an
independent reader of the same text does not share.

Mutations take their choices from a `random.Random`, so that hypothesis can drive and shrink them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import arff
import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import nearlabel as nl
from nearlabel.datasets import Dataset, load, save
from nearlabel.datasets.text import names_or_numbers, truth

SECONDS = 2.0  # of computing, for one input
PEAK = 2**26  # bytes that reading one input may take, measured on a sample
ROOM = 2**29  # bytes of address space that no input may go beyond
LONGEST = 600  # characters of a message, the file's name aside
LABELS = ("one", "l two")

# --- Limits ---------------------------------------------------------------------------------------

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]
_STATM = Path("/proc/self/statm")


class TooSlow(BaseException):
    """No Exception, so that nothing that is tested can take it for one of its own."""


def _stop(*_: object) -> None:
    raise TooSlow(f"more than {SECONDS} s")


@contextmanager
def limits(measured: bool) -> Iterator[None]:
    """Bound the computing time and the memory of what is done inside, where the system can."""
    if not hasattr(signal, "SIGVTALRM"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    room = _STATM.exists() and resource.getrlimit(resource.RLIMIT_AS)
    if room:
        size = int(_STATM.read_text().split()[0]) * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (size, room[1]))
    if measured:
        tracemalloc.start()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS * (5 if measured else 1))
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
        assert peak < PEAK, f"{peak / 2**20:.0f} MiB for one input"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        tracemalloc.stop()
        signal.signal(signal.SIGVTALRM, before)
        if room:
            resource.setrlimit(resource.RLIMIT_AS, room)


# --- What must hold of an answer ------------------------------------------------------------------


def assert_clean(error: Exception, path: Path) -> None:
    text = str(error)
    assert text.startswith(str(path.with_suffix(""))), f"the file is not named: {text[:200]!r}"
    assert text.isprintable(), f"not one printable line: {text[:200]!r}"
    assert len(text) - len(str(path)) < LONGEST, f"{len(text)} characters: {text[:200]!r}"


def assert_whole(data: Dataset) -> None:
    X, Y = data.X, data.Y
    assert X.ndim == 2
    assert 0 not in X.shape
    assert X.dtype.kind in "iuf"
    assert np.isfinite(X.data if sparse.issparse(X) else X).all()
    assert Y.shape[0] == X.shape[0]
    assert Y.dtype == np.int8
    for matrix in (X, Y):
        if sparse.issparse(matrix):
            matrix.check_format(full_check=True)
            assert matrix.has_canonical_format
    assert (Y.data == 1).all()
    for names, length in ((data.label_names, Y.shape[1]), (data.feature_names, X.shape[1])):
        assert names is None or len(set(names.tolist())) == len(names) == length
    for rows in (data.train, data.row_names, *data.extra.values()):
        assert rows is None or len(rows.tolist()) == X.shape[0]


def assert_survives(data: Dataset, folder: Path, choice: int) -> None:
    """Write a data set in one of the forms and read it again."""
    suffix = (".arff", ".csv", ".tsv", ".jsonl", ".txt", ".npz")[choice % 6]
    if max(data.X.shape[1], data.Y.shape[1]) > 1000 or abs(data.X).max() > 2**53:
        return  # too wide for a table of cells; whole numbers beyond 2**53 are not those of float64
    if suffix != ".npz":
        data = replace(data, extra={})
    if suffix in (".arff", ".txt"):
        data = replace(data, row_names=None)
    path = folder / f"again{suffix}"
    try:
        save(data, path)
    except ValueError as error:  # a name that the form cannot hold, said before anything is written
        assert "cannot be written" in str(error), repr(error)  # noqa: PT017
        return
    unlabeled = {} if data.Y.shape[1] or suffix in (".npz", ".txt") else {"labels": ()}
    again = load(path, **unlabeled)  # type: ignore[arg-type]
    assert np.array_equal(_dense(again.X), _dense(data.X))
    assert np.array_equal(_dense(again.Y), _dense(data.Y))
    for key, width in (("feature_names", data.X.shape[1]), ("label_names", data.Y.shape[1])):
        ours, theirs = (names_or_numbers(getattr(one, key), width) for one in (data, again))
        assert ours == theirs
    for key in ("train", "row_names"):
        ours, theirs = getattr(data, key), getattr(again, key)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_predicts(model: Any) -> None:
    """Ask a model that came from a file for everything."""
    if isinstance(model, nl.NeighborGraph):
        nl.NeighborGraph(model.indices, model.distances, model.n_base)
        return
    d = getattr(model, "n_features_in_", None)
    if d is None or d > 1000:
        return
    X = np.vstack([np.zeros(d), np.arange(d) / d])
    if not hasattr(model, "predict_proba"):  # a scaler
        assert np.isfinite(model.transform(X)).all()
        return
    last = model[-1] if hasattr(model, "steps") else model
    if last._store is None or abs(last._store.vectors).max() > 1e100:
        return  # made without vectors; or so large that their distances are not finite
    chances = model.predict_proba(X)
    assert chances.shape[0] == 2
    assert ((chances > 0) & (chances < 1)).all()
    assert model.predict(X).shape[0] == 2
    assert np.isfinite(last.rank(X, 1).scores).all()


# --- Oracles --------------------------------------------------------------------------------------


def plain_text(content: bytes) -> str:
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return content.removeprefix(b"\xef\xbb\xbf").decode()


def assert_cells(data: Dataset, rows: Sequence[dict[str, Any]], marked: bool = False) -> None:
    """Compare with cells by column: numbers, nominal values, and words for yes and no.

    `marked`: names may be marked as those of features or of labels.
    """
    assert len(rows) == len(data)
    for mark, matrix, names in (
        ("feature:", data.X, names_or_numbers(data.feature_names, data.X.shape[1])),
        ("label:", data.Y, names_or_numbers(data.label_names, data.Y.shape[1])),
    ):
        for name, column in zip(names, _dense(matrix).T.tolist(), strict=True):
            name = mark + name if marked and mark + name in rows[0] else name
            if name in rows[0]:
                assert column == [_number(row[name]) for row in rows], name
            else:
                base = max((n for n in rows[0] if name.startswith(f"{n}=")), key=len, default="")
                if not base and mark == "label:":
                    continue  # of a column of tags, which are compared elsewhere
                value = name.removeprefix(f"{base}=")
                assert column == [str(row[base]).strip() == value for row in rows], name


def _number(cell: Any) -> float:
    said = truth(cell) if isinstance(cell, str) else None
    return float(cell if said is None else said)


def assert_tags(data: Dataset, cells: list[Any]) -> None:
    texts = [cell for cell in cells if isinstance(cell, str)]
    mark = next((mark for mark in ";|," if any(mark in text for text in texts)), "\0")
    names = names_or_numbers(data.label_names, data.Y.shape[1])
    for row, cell in zip(_dense(data.Y), cells, strict=True):
        parts = set(cell) if isinstance(cell, list) else {tag.strip() for tag in cell.split(mark)}
        assert {names[column] for column in np.flatnonzero(row)} == parts - {
            "" if isinstance(cell, str) else None
        }


def oracle_arff(data: Dataset, content: bytes) -> None:
    """By liac-arff. Left out is what the two mean to read differently.

    Escapes: liac knows \\u and octal ones and cuts any quotes off a name. Whole numbers: liac cuts
    off what is behind the point of an ``integer``. Missing values: we refuse them. ``%`` in a line:
    as the first mark of a value only liac takes it for a comment. Types: liac ignores what follows.
    """
    text = plain_text(content)
    if "\\" in text or re.search(r"(?i)integer", text):
        return
    try:
        told = arff.loads(text, encode_nominal=False)
    except Exception:  # liac raises many kinds of errors
        return
    names = [name for name, _ in told["attributes"]]
    rows = [dict(zip(names, row, strict=True)) for row in told["data"]]
    assert_cells(data, rows)


def oracle_csv(data: Dataset, content: bytes) -> None:
    text = plain_text(content)
    head = "".join(text.partition("\n")[0].split('"')[::2])
    delimiter = max(",;\t", key=head.count)
    lines = [line + "\n" for line in text.split("\n")]
    header, *rows = (row for row in csv.reader(lines, delimiter=delimiter) if row)
    names = [n if n.startswith(("label:", "feature:")) else n.strip() for n in header]
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    assert_cells(data, cells, marked=True)
    tags = next((n for word in ("tags", "labels") for n in names if n.lower() == word), None)
    if tags is not None and not any(name.startswith("label:") for name in names):
        assert_tags(data, [row[tags] for row in cells])


def oracle_jsonl(data: Dataset, content: bytes) -> None:
    rows = [json.loads(line) for line in plain_text(content).split("\n") if line.strip()]
    header = rows.pop(0) if "nearlabel" in rows[0] else {}
    if not header and not isinstance(rows[0].get("features"), list | dict):
        assert_cells(data, rows, marked=True)
        tags = next((n for word in ("tags", "labels") for n in rows[0] if n.lower() == word), None)
        if tags is not None and not any(name.startswith("label:") for name in rows[0]):
            assert_tags(data, [row[tags] for row in rows])
        return
    if data.X.shape[1] < 1000:
        names = names_or_numbers(data.feature_names, data.X.shape[1])
        for vector, row in zip(_dense(data.X).tolist(), rows, strict=True):
            told = row["features"]
            assert vector == (
                told if isinstance(told, list) else [told.get(name, 0) for name in names]
            )
    if data.Y.shape[1] < 1000 and data.Y.shape[1]:
        assert_tags(data, [row.get("labels", row.get("tags")) for row in rows])


def oracle_sparse(data: Dataset, content: bytes) -> None:
    """By scikit-learn's reader, which skips rows without labels and features, and comments."""
    head, _, rest = plain_text(content).partition("\n")
    d = int(head.split()[1])
    lines = [line for line in rest.split("\n")[: len(data)]]
    if d > 1000 or data.Y.shape[1] > 1000 or not all(map(str.strip, lines)):
        return
    try:
        X, tags = load_svmlight_file(
            io.BytesIO("\n".join(lines).encode()), n_features=d, multilabel=True, zero_based=True
        )
    except ValueError:  # it wants columns in order
        return
    assert np.array_equal(X.toarray(), _dense(data.X))
    assert [np.flatnonzero(row).tolist() for row in _dense(data.Y)] == [sorted(t) for t in tags]


def oracle_xml(names: list[str], content: bytes) -> None:
    parser = ElementTree.XMLParser(encoding="utf-8")
    root = ElementTree.fromstring(plain_text(content), parser)
    assert names == [e.get("name") for e in root.iter() if re.sub("{.*}", "", e.tag) == "label"]
