"""Fuzzing of everything that reads a file: seeds, mutations, and what must hold of every input.

A target takes bytes and says whether they were read (True) or refused (False). Anything but a right
answer or a clean error (of the two documented kinds, one printable line that begins with the file's
name) is raised: another exception, a warning, two seconds of computing, a blow-up of memory, an
answer that breaks its own contract, that does not survive being written and read again, or that an
independent reader of the same text does not share.

Mutations take their choices from a `random.Random`, so that hypothesis can drive and shrink them.
"""

from __future__ import annotations

import atexit
import csv
import gzip
import hashlib
import io
import json
import re
import shutil
import signal
import struct
import tempfile
import tracemalloc
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import arff
import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import nearlabel as nl
from nearlabel.datasets import DataError, Dataset, load, save
from nearlabel.datasets.arff import read_labels
from nearlabel.datasets.text import TextFile, names_or_numbers, truth
from nearlabel.persistence import FileError

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
    raise TooSlow("it takes too long")


@contextmanager
def limits(measured: bool, seconds: float) -> Iterator[None]:
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
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * (5 if measured else 1))
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
    if max(data.X.shape[1], data.Y.shape[1]) > 1000 or float(abs(data.X).max()) > 2**53:
        return  # too wide for a table of cells; whole numbers beyond 2**53 are not those of float64
    if suffix != ".npz":
        data = replace(data, extra={})
    if suffix in (".arff", ".txt"):
        data = replace(data, row_names=None)
    path = folder / f"again{suffix}"
    try:
        save(data, path)
    except ValueError as error:  # a name that the form cannot hold, said before anything is written
        assert re.search("cannot be written|is no text", str(error)), repr(error)
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
    if last._store is None or float(abs(last._store.vectors).max()) > 1e100:
        return  # made without vectors; or so large that their distances are not finite
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "metric=.*compares row by row")
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        chances = model.predict_proba(X)
        assert ((chances > 0) & (chances < 1)).all()
        assert len(chances) == model.predict(X).shape[0] == 2
        assert np.isfinite(last.rank(X, 1).scores).all()


# --- Oracles --------------------------------------------------------------------------------------


def plain_text(content: bytes) -> str:
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return content.removeprefix(b"\xef\xbb\xbf").decode()


Cells = dict[str, list[Any]]


def assert_cells(data: Dataset, features: Cells, labels: Cells) -> None:
    """Compare with the cells of columns: numbers, nominal values, and words for yes and no."""
    names = names_or_numbers(data.feature_names, data.X.shape[1])
    for name, values in zip(names, _dense(data.X).T.tolist(), strict=True):
        if name in features:
            assert values == [_number(cell) for cell in features[name]], name
            continue
        column = max((one for one in features if name.startswith(f"{one}=")), key=len)
        value = name.removeprefix(f"{column}=")
        assert values == [str(cell).strip() == value for cell in features[column]], name
    names = names_or_numbers(data.label_names, data.Y.shape[1])
    for name, values in zip(names, _dense(data.Y).T.tolist(), strict=True):
        if labels:  # otherwise they stand in a column of tags
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
    for row, cell in zip(_dense(data.Y), cells, strict=True):
        parts = set(cell) if isinstance(cell, list) else {tag.strip() for tag in cell.split(mark)}
        assert {names[column] for column in np.flatnonzero(row)} == parts - {
            "" if isinstance(cell, str) else None
        }


def oracle_arff(data: Dataset, content: bytes) -> None:
    """By liac-arff. Left out is what the two mean to read differently.

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
    head = "".join(text.partition("\n")[0].split('"')[::2])
    lines = [line + "\n" for line in text.split("\n")]
    reader = csv.reader(lines, delimiter=max(",;\t", key=head.count))
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
        for vector, row in zip(_dense(data.X).tolist(), rows, strict=True):
            told = row["features"]
            cells = told if isinstance(told, list) else [told.get(name, 0) for name in names]
            assert vector == [float(cell) for cell in cells]
    if 0 < data.Y.shape[1] < 1000:
        assert_tags(data, [row.get("labels", row.get("tags")) for row in rows])


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
    assert np.array_equal(X.toarray(), _dense(data.X))
    assert [np.flatnonzero(row).tolist() for row in _dense(data.Y)] == [sorted(t) for t in tags]


def oracle_xml(names: list[str], content: bytes) -> None:
    """By ElementTree, which does not stand a "}" in the name of a namespace."""
    text = plain_text(content)
    if "}" not in text:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(encoding="utf-8"))
        elements = [one for one in root.iter() if one.tag.rpartition("}")[2] == "label"]
        assert names == [one.get("name") for one in elements]


# --- Seeds ----------------------------------------------------------------------------------------

_ARFF = """% a comment
@relation 'some: -C {c}'

@attribute width numeric
@ATTRIBUTE 'the "height" of' REAL
@attribute color {{red, 'light blue', "grün"}}
@attribute odd {{no,yes}}
@attribute k {{1,2,3}}
@attribute one {{0,1}}
@attribute 'l two' {{0,1}}
{split}@data
{rows}"""
_DENSE = "1.5,-2e3, red ,yes,1,0,1\n% between\n.5,0,'light blue',no,3,1,0\n-0,1e-5,grün,no,2,0,0\n"
_SPARSE = "{0 1.5, 1 -2,2 'light blue',6 1}\n{}\n{ 3 yes ,5 1}\n{4 3}\n"
_XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="one"></label>
<!-- other -->
<label name='l &amp; two &#xe9;'><label name="grün"/>
</label>
</labels>
"""
_CSV = [
    'id,width,color,tags\na,1.5,red,"x;y"\nb,-2e3,blue,\n"c ""d""",.5,red,"y; z"\n',
    "width;height;label:one;label:l two;split\n1;2;0;1;train\n3;-4;yes;No;test\n",
    'Tags\t"the width"\tfeature:id\nx|y\t1\t2\ny\t3\t1e300\n',
    'labels,"a\nb",c\ngrün,0,"1"\n"p,q",1,0\n',
]
_JSONL = [
    '{"id": "a", "width": 1.5, "color": "red", "tags": "x;y"}\n'
    '{"tags": "y", "width": -2, "color": "blue", "id": "b"}\n',
    '{"features": [1, 2.5], "labels": ["x", "gr\\u00fcn"]}\n\n'
    '{"features": [0, -1e5], "labels": []}\n',
    '{"features": {"a": 1, "b": 2.5}, "tags": "x"}\n{"features": {}, "tags": "y"}\n',
    '{"nearlabel": 1, "features": 3, "labels": 2, "label_names": ["x", "y"]}\n'
    '{"features": {"0": 1, "2": 3}, "labels": ["y"], "split": "train", "id": 1}\n'
    '{"features": {}, "labels": [], "split": "test", "id": "b"}\n',
    '{"nearlabel": 1, "features": 2, "feature_names": ["a", "b"]}\n{"features": [1, 2]}\n',
    '{"width": 1, "label:one": 0, "label:two": true}\n'
    '{"width": 2, "label:one": 1, "label:two": 0}\n',
]
_SPARSE_TEXT = [
    "3 5 4\n0,2 0:1 3:2.5\n 1:-1e3\n3 4:0.5 2:7\n",
    "2 3 2\n0:1\n1 \n",
    "1 1 0\n 0:1\n\n",
]
_X = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
_Y = np.array([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]])


def _variants(text: str) -> list[bytes]:
    plain = text.encode()
    marked = b"\xef\xbb\xbf" + plain
    return [plain, marked, plain.replace(b"\n", b"\r\n"), plain[:-1], gzip.compress(plain, mtime=0)]


@cache
def _written_seeds() -> dict[str, list[bytes]]:
    """Seeds that only the package itself can write."""
    split, names = np.array([True] * 4 + [False] * 2), np.array(["a", "b c"])
    data = Dataset(_X, sparse.csr_array(_Y.astype(np.int8)), names, None, split, None)
    sets = [
        data,
        replace(data, X=sparse.csr_array(_X), row_names=np.array(list("uvwxyz"))),
        replace(
            data, X=_X.astype(np.float32), feature_names=names, extra={"part": split.astype(int)}
        ),
    ]
    graph = nl.neighbor_graph(_X, 3)
    models = [
        nl.MLkNN(n_neighbors=3).fit(_X, _Y, label_names=["x", "y"]),
        nl.MLkNN(n_neighbors=2, smoothing=0, search=nl.ExactSearch()).fit(sparse.csr_array(_X), _Y),
        nl.MLkNN(n_neighbors=2, metric="cosine").fit(_X, np.where(_Y[:, 0], "yes", "no")),
        nl.MLkNN(n_neighbors=2, metric="precomputed").fit(abs(_X[:, :1] - _X[:, 0]), _Y),
        nl.MLkNN(n_neighbors=2).fit_graph(graph, _Y),
        make_pipeline(MinMaxScaler(), StandardScaler(), nl.MLkNN(n_neighbors=3)).fit(_X, _Y),
        MaxAbsScaler().fit(_X),
        graph,
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.npz"

        def content(write: Callable[[Path], None]) -> bytes:
            write(path)
            return path.read_bytes()

        return {
            "npz": [content(lambda path, one=one: save(one, path)) for one in sets],  # type: ignore[misc]
            "model": [content(lambda path, one=one: nl.save(one, path)) for one in models],  # type: ignore[misc]
        }


# --- Mutations ------------------------------------------------------------------------------------

_words = re.compile(r"\S+").findall
_NUMBERS = [
    *_words("nan inf -inf 1e400 -0 1_000 ٣ 0x10 ? -1 0 1 2 1.5 1e-320 1e16 2147483647 2147483648"),
    *("", "9" * 20, "9" * 400, "9" * 4999),
]
_TEXTS = [
    *_words("' \" \\ % , ; : | { } [ ] < > & # é @data @attribute @relation numeric string -C"),
    *_words("-split-number % split: train test qid:1 true null yes id tags labels features label:"),
    *_words("feature: nearlabel \\ud800 \\u0000 <!DOCTYPE <!ENTITY &#0; encoding= iso-8859-1 foo"),
    *("", " ", "\0", "\r", "\t", "\n", "\x85", "\u2028", " " * 1500 + "x'", "x" * 999),
    *("[" * 990, '"x": ' + "[" * 980 + "]" * 980),
]
_ODD = [b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1f\x8b"]
EDGES = [*(text.encode() for text in _NUMBERS + _TEXTS), *_ODD]
_PIECES = [rb"(?s)[\w.+-]+|\s+|.", rb"[^\n]*\n|[^\n]+", rb"(?s)."]  # tokens, lines, bytes


def mutated_text(content: bytes, other: bytes, random: Random) -> bytes:
    """Change some tokens, lines or bytes; `other` is a seed from which pieces come."""
    if content.startswith(b"\x1f\x8b") and random.random() < 0.8:
        with suppress(OSError, EOFError, zlib.error):  # it was damaged before
            inside = mutated_text(gzip.decompress(content), other, random)
            return gzip.compress(inside, 1, mtime=0)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        pieces = re.findall(random.choice(_PIECES), content) or [b""]
        spare = [*EDGES, *re.findall(_PIECES[0], other)]
        here, there = random.randrange(len(pieces)), random.randrange(len(pieces))
        kind = random.randrange(7)
        if kind == 0:
            del pieces[here]
        elif kind == 1:
            pieces.insert(there, pieces[here])
        elif kind == 2:
            pieces[here], pieces[there] = pieces[there], pieces[here]
        elif kind == 3:
            number = re.fullmatch(rb"[-+.0-9e]+", pieces[here])
            pieces[here] = random.choice(EDGES[: len(_NUMBERS)] if number else spare)
        elif kind == 4:
            pieces.insert(here, random.choice(spare))
        elif kind == 5:
            lines = re.findall(_PIECES[1], other) or [b""]
            pieces[here:] = lines[random.randrange(len(lines)) :]
        else:
            piece = bytearray(pieces[here] or b" ")
            piece[random.randrange(len(piece))] ^= 1 << random.randrange(8)
            pieces[here] = bytes(piece)
        content = b"".join(pieces)
    return content


_VALUES = [0, 1, -1, 2, 5, 127, 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 0.5, 1e308, np.nan, np.inf]
_DTYPES = _words("i1 i2 i4 i8 u1 u8 f2 f4 f8 >f8 >i4 ? U1 c8 M8[s] g")


def mutated_array(array: Any, random: Random) -> Any:
    """An array with another value, type, shape or length."""
    kind = random.randrange(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(ValueError, TypeError, OverflowError):  # there may be no such array
            if kind < 2 and array.size:
                array = array.copy()
                array.reshape(-1)[random.randrange(array.size)] = random.choice(_VALUES)
            elif kind == 2:
                array = array.astype(random.choice(_DTYPES))
            elif kind == 3:
                shapes = [(-1,), (1, -1), (-1, 1), (0, 2**62), (1,) * 60 + (-1,), (2, -1), ()]
                array = array.reshape(random.choice(shapes))
            else:
                array = np.resize(
                    array, random.choice((0, 1, array.size + 1, max(array.size - 1, 0)))
                )
    return array


NODES: list[Any] = [
    *(None, True, 0, -1, 1, 2, 2**31, 2**40, 2**63, 10**400, 0.5, 1e308, float("nan"), "", "x"),
    *("x\n" * 400, "euclidean", "cosine", "precomputed", "chebyshev", "MLkNN", "Pipeline", "|i1"),
    *([], {}, [[]], [1, 2], ["a", "a"], ["x", "y"], [6, 2**40], {"array": 0}, {"array": 99}),
    *({"array": -1}, {"array": [0]}, {"ExactSearch": {}}, {"ExactSearch": {"block_bytes": 0}}),
    *(
        {"ExactSearch": {"a\nb": 1}},
        ["<U100000000", ["a", "b"]],
        ["a", ["a", "b"]],
        ["<f2", [0, 1e9]],
    ),
    json.loads("[" * 600 + "]" * 600),
]


def mutated_tree(tree: Any, random: Random) -> None:
    """Change one node of a tree of JSON values, in place."""
    nodes = [tree]
    for node in nodes:  # grows while it is read
        inside = node.values() if isinstance(node, dict) else node
        nodes += [child for child in inside if isinstance(child, dict | list) and child]
    node = random.choice([node for node in nodes if node])
    keys = list(node) if isinstance(node, dict) else range(len(node))
    key = random.choice(list(keys))
    kind = random.randrange(8)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[random.choice(["x", "a\nb", "array", "dense", "indices"])] = node.pop(key)
    elif kind == 2:
        node[key] = json.loads(json.dumps(random.choice(nodes)))
    elif kind == 3 and type(node[key]) in (int, float):
        node[key] += random.choice((-1, 1))
    else:
        node[key] = json.loads(json.dumps(random.choice(NODES)))


_PREAMBLE = struct.Struct("<14sHQQ")
_START = _PREAMBLE.size + 32


def unpacked_model(content: bytes) -> tuple[dict[str, Any], list[Any]]:
    """The header of a model file and its arrays."""
    end = _START + _PREAMBLE.unpack(content[: _PREAMBLE.size])[2]
    header, arrays = json.loads(content[_START:end]), []
    for entry in header["arrays"]:
        end += -end % 64
        dtype, shape = np.dtype(entry["dtype"]), entry["shape"]
        count = int(np.prod(shape, dtype=int))
        arrays.append(np.frombuffer(content, dtype, count, end).reshape(shape))
        end += count * dtype.itemsize
    return header, arrays


def packed_model(header: dict[str, Any], arrays: list[Any], version: int = 2) -> bytes:
    """A model file all of whose checksums and lengths fit, whatever it says."""
    text = json.dumps(header).encode()
    body = b""
    for array in arrays:
        body += bytes(-(_START + len(text) + len(body)) % 64) + array.tobytes()
    body += bytes(-(_START + len(text) + len(body)) % 64)
    mark = b"\x89nearlabel\r\n\x1a\n"
    lengths = _PREAMBLE.pack(mark, version, len(text), _START + len(text) + len(body))
    return lengths + hashlib.sha256(lengths + text).digest() + text + body


def mutated_model(content: bytes, other: bytes, random: Random) -> bytes:
    """Change the tree, the arrays or what is said of them, and make all checksums fit again."""
    if random.random() < 0.1:
        return mutated_text(content, other, random)
    with suppress(RecursionError):  # a tree that went into itself
        return _rebuilt_model(content, random)
    return content


def _rebuilt_model(content: bytes, random: Random) -> bytes:
    header, arrays = unpacked_model(content)
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        if arrays and random.random() < 0.4:
            place = random.randrange(len(arrays))
            arrays[place] = mutated_array(arrays[place], random)
        else:
            mutated_tree(header["tree"], random) if header["tree"] else None
    header["arrays"] = [
        {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
        for array in arrays
    ]
    if random.random() < 0.1:
        mutated_tree(header, random)
    return packed_model(header, arrays, random.choice((2, 2, 2, 2, 2, 1, 0, 3)))


def mutated_npz(content: bytes, other: bytes, random: Random) -> bytes:
    """Change arrays, their headers or their names, and pack all again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        name = random.choice(list(members))
        kind = random.randrange(8)
        if kind == 0:
            members[random.choice(list(members))] = members.pop(name)
        elif kind == 1:
            members[random.choice(["X.npy", "z.npy", "z\n.npy", "x", "X_data.npy"])] = members[name]
        elif kind == 2:
            head = members[name].find(b"\n") + 1
            members[name] = mutated_text(members[name][:head], b"", random) + members[name][head:]
        else:
            try:
                array = np.load(io.BytesIO(members[name]))
            except Exception:  # it was changed before
                continue
            packed = io.BytesIO()
            np.save(packed, mutated_array(array, random), allow_pickle=False)
            members[name] = packed.getvalue()
    result = io.BytesIO()
    form = random.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(result, "w", form) as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    packed_bytes = result.getvalue()
    return mutated_text(packed_bytes, other, random) if random.random() < 0.1 else packed_bytes


# --- Targets --------------------------------------------------------------------------------------

PLACE = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # of the files to be read


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="nearlabel-fuzzing-", dir=PLACE)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Attributes
    ----------
    name : str
    seeds : tuple of bytes
    read : callable
        Reads a file that has the given content.
    verify : callable
        Raises where what `read` gave is not right; takes the content, too.
    mutated : callable
    """

    name: str
    seeds: tuple[bytes, ...]
    suffix: str
    read: Callable[[Path, bytes], Any]
    verify: Callable[[Any, bytes], None]
    mutated: Callable[[bytes, bytes, Random], bytes] = mutated_text

    def run(self, content: bytes, seconds: float = SECONDS) -> bool:
        """Whether the content was read; raises where neither that nor a clean error came of it."""
        path = _folder() / f"{self.name}{self.suffix}"
        path.write_bytes(content)
        found = None
        measured = len(content) < 4096 and zlib.crc32(content) % 64 == 0
        with limits(measured, seconds):
            try:
                found = self.read(path, content)
            except (DataError, FileError) as error:
                assert_clean(error, path)
        if found is not None:
            self.verify(found, content)
        return found is not None

    def mutation(self, random: Random) -> bytes:
        """A mutated seed."""
        return self.mutated(random.choice(self.seeds), random.choice(self.seeds), random)

    def campaign(self, runs: int, seed: int = 0) -> Counter[bool]:
        """Run mutated seeds; the numbers of those that were read and refused."""
        random, counts = Random(seed), Counter[bool]()
        for _ in range(runs):
            content = self.mutation(random)
            try:
                counts[self.run(content)] += 1
            except BaseException as error:
                error.add_note(f"{self.name}: {content!r}")
                raise
        return counts


def _verifier(oracle: Callable[[Dataset, bytes], None] | None) -> Callable[[Dataset, bytes], None]:
    def verify(data: Dataset, content: bytes) -> None:
        assert_whole(data)
        if oracle is not None:
            oracle(data, content)
        choice = zlib.crc32(content)
        if choice % 8 == 0:
            assert_survives(data, _folder(), choice // 8)

    return verify


def _read_arff(path: Path, content: bytes) -> Dataset:
    with suppress(EOFError, OSError, zlib.error):
        content = gzip.decompress(content)
    return load(path, labels=LABELS if b"l two" in content else None)


@cache
def targets() -> dict[str, Target]:
    """All targets by name."""
    heads = [
        _ARFF.format(c=c, split=split, rows=rows)
        for c, split, rows in (
            ("-2", "", _DENSE),
            ("", "% split: train 2, test 1\n", _DENSE),
            ("-2", "", _SPARSE),
            ("", "", _SPARSE),
        )
    ]
    arff_texts = [head.replace("-C '", "'") for head in heads]
    meka = "@relation 'x: -C 2 -split-number 1'\n@attribute a {0,1}\n@attribute b {0,1}\n" + (
        "@attribute 'c d' numeric\n@data\n0,1,2\n1,0,-3.5\n"
    )
    several = {
        "arff": (".arff", [*arff_texts, meka], _read_arff, oracle_arff),
        "csv": (".csv", _CSV, lambda path, _: load(path), oracle_csv),
        "jsonl": (".jsonl", _JSONL, lambda path, _: load(path), oracle_jsonl),
        "sparse": (".txt", _SPARSE_TEXT, lambda path, _: load(path), oracle_sparse),
    }
    found = {
        name: Target(
            name,
            tuple(variant for text in texts for variant in _variants(text)),
            suffix,
            read,
            _verifier(oracle),
        )
        for name, (suffix, texts, read, oracle) in several.items()
    }
    found["xml"] = Target(
        "xml", tuple(_variants(_XML)), ".xml", lambda p, _: read_labels(TextFile(p)), oracle_xml
    )
    written = _written_seeds()
    found["npz"] = Target(
        "npz",
        tuple(written["npz"]),
        ".npz",
        lambda path, _: load(path),
        _verifier(None),
        mutated_npz,
    )
    found["model"] = Target(
        "model",
        tuple(written["model"]),
        ".nearlabel",
        lambda path, _: nl.load(path),
        lambda model, _: assert_predicts(model),
        mutated_model,
    )
    return found
