"""Weights in a PyTorch file, read without PyTorch and without unpickling.

Such a file, of `torch.save` before version 1.6, is five pickles (a magic number, a version, sizes
of types, the tensors, the names of their storages) followed by the storages: a length and numbers
each. A pickle is a program for a stack machine. It is not executed here, and nothing is imported:
the few instructions that a dict of tensors needs are interpreted on plain values, and any other is
refused. Sizes are not checked: the catalog has the checksum of the file.
"""

from __future__ import annotations

import io
import pickletools
from typing import Any, TypeAlias

import numpy as np

from nearlabel.common.arrays import Array

Value: TypeAlias = Any  # plain: None, booleans, numbers, strings, lists, tuples and dicts of such


def torch_weights(content: bytes) -> dict[str, Array]:
    """The arrays of a file by name; ValueError if it has other instructions."""
    file = io.BytesIO(content)
    *_, tensors, keys = [_value(file) for _ in range(5)]
    storages = {}
    for (_, kind, key, _, count, _), *_ in tensors.values():
        dtypes = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
        storages[key] = np.dtype(dtypes[kind]), count
    contents = {}
    for key in keys:
        dtype, count = storages[key]
        file.read(8)  # the count again
        contents[key] = file.read(count * dtype.itemsize)
    arrays = {}
    for name, ((_, _, key, *_), offset, shape, strides, *_) in tensors.items():
        dtype, _ = storages[key]
        steps = [step * dtype.itemsize for step in strides]
        arrays[name] = np.ndarray(shape, dtype, contents[key], offset * dtype.itemsize, steps)
    return arrays


def _value(file: io.BytesIO) -> Value:
    """The value described by the next pickle of a file, made of plain parts.

    A name of a class is a string, a storage the tuple of its kind, key and size, and a tensor the
    tuple of its storage, offset, shape and strides.
    """
    stack: list[Value] = []
    marks: list[int] = []
    memo: dict[object, Value] = {}

    def since_mark() -> list[Value]:
        place = marks.pop()
        items = stack[place:]
        del stack[place:]
        return items

    for opcode, value, _ in pickletools.genops(file):
        match opcode.name:
            case "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1" | "GLOBAL":
                stack.append(value)
            case "NONE" | "NEWTRUE" | "NEWFALSE" as name:
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "MARK":
                marks.append(len(stack))
            case "BINPUT" | "LONG_BINPUT":
                memo[value] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[value])
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE":
                stack.append(tuple(since_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3" as name:
                size = int(name[-1])
                stack[-size:] = [tuple(stack[-size:])]
            case "APPEND":
                item = stack.pop()
                stack[-1].append(item)
            case "APPENDS":
                items = since_mark()
                stack[-1].extend(items)
            case "SETITEM":
                item = stack.pop()
                key = stack.pop()
                stack[-1][key] = item
            case "SETITEMS":
                items = since_mark()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "REDUCE":  # the constructor of a dict, without arguments, or of a tensor
                arguments = stack.pop()
                stack[-1] = arguments or {}
            case "BUILD":  # the versions of modules, attached to a dict
                stack.pop()
            case "STOP":
                return stack.pop()
            case "PROTO" | "BINPERSID":  # a storage remains the tuple that describes it
                pass
            case name:
                raise ValueError(f"weights do not need the instruction {name}")
    raise ValueError("the weights are truncated")
