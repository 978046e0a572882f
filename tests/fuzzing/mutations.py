"""Mutations of files: of bytes, of tokens, and of trees and arrays with corrected checksums.

They take their choices from a `random.Random`, so that hypothesis can drive and shrink them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np

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
    """Change some tokens, lines or bytes; `other` is a seed that provides pieces."""
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


def mutated_bytes(content: bytes, other: bytes, random: Random) -> bytes:
    """Change, flip or leave out some bytes, or none."""
    changed = bytearray(content)
    for _ in range(random.choice((0, 1, 1, 2, 3, 8))):
        place, kind = random.randrange(len(changed)), random.randrange(3)
        if kind == 0:
            changed[place] = random.randrange(256)
        elif kind == 1:
            changed[place] ^= 1 << random.randrange(8)
        else:
            del changed[place : place + random.choice((1, 2, 8))]
    return bytes(changed)


_VALUES = [0, 1, -1, 2, 5, 127, 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 0.5, 1e308, np.nan, np.inf]
_DTYPES = _words("i1 i2 i4 i8 u1 u8 f2 f4 f8 >f8 >i4 ? U1 c8 M8[s] g")


def mutated_array(array: Any, random: Random) -> Any:
    """An array with another value, type, shape or length."""
    kind = random.randrange(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(ValueError, TypeError, OverflowError, RuntimeError):  # there may be none
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
    *(
        "filename",
        "(a+)+$",
        "pandas",
        "OneHotEncoder",
        "HashingVectorizer",
        "a__b",
        {"type": "int8"},
    ),
    *({"tuple": [1, 10**9]}, {"slice": [0, None, None]}, {"float": "inf"}, {"objects": [None, 1]}),
    *({"texts": ["a", "b"]}, {"dict": [["a", 1]]}, {"type": "int8"}, {"scalar": ["int8", 1]}),
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


def packed_model(header: dict[str, Any], arrays: list[Any], version: int = 3) -> bytes:
    """A model file with correct checksums and lengths for any content."""
    text = json.dumps(header).encode()
    body = b""
    for array in arrays:
        body += bytes(-(_START + len(text) + len(body)) % 64) + array.tobytes()
    body += bytes(-(_START + len(text) + len(body)) % 64)
    mark = b"\x89nearlabel\r\n\x1a\n"
    lengths = _PREAMBLE.pack(mark, version, len(text), _START + len(text) + len(body))
    return lengths + hashlib.sha256(lengths + text).digest() + text + body


def mutated_model(content: bytes, other: bytes, random: Random) -> bytes:
    """Change the tree, the arrays or their description, and correct all checksums."""
    if random.random() < 0.1:
        return mutated_text(content, other, random)
    with suppress(RecursionError):  # a circular tree
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
    return packed_model(header, arrays, random.choice((3, 3, 3, 3, 2, 1, 0, 4)))


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
