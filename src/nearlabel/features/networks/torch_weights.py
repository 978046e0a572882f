"""Weights in a PyTorch file, read without PyTorch and without unpickling.

Such a file is five pickles (a magic number, a version, sizes of types, the tensors, the names of
their storages) followed by the storages: a length and numbers each. A pickle is a program for a
stack machine. It is not executed here, and nothing is imported: the few instructions that a dict of
tensors needs are interpreted on plain values, and any other is refused.
"""

from __future__ import annotations

import io
import pickletools
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array

_MARK = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MOST_STEPS = 200_000  # of one pickle; EfficientNet-Lite0 takes 10,696
_MOST_AXES = 8
_KINDS = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch DoubleStorage": np.dtype("<f8"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch LongStorage": np.dtype("<i8"),
}
_DICT, _TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
_VALUES = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1")
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


class _Name(NamedTuple):
    """A class or function named in a pickle; it is never looked up."""

    name: str


class _Storage(NamedTuple):
    key: str
    dtype: Any
    length: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def torch_weights(content: bytes) -> dict[str, Array]:
    """The arrays of a `torch.save` file in the format before version 1.6, by name.

    Raises
    ------
    ValueError
        For anything else: another format, something to execute, a size beyond the end of the file.
        One sentence.
    """
    file = io.BytesIO(content)
    try:
        if _value(file) != _MARK or _value(file) != _VERSION:
            raise ValueError("it has another magic number")
        _value(file)  # sizes of types on the machine that wrote it
        tensors, keys = _value(file), _value(file)
        if not isinstance(tensors, dict) or not isinstance(keys, list):
            raise ValueError("it is not a dict of tensors")
        storages = _storages(file, tensors, keys)
        return {
            name: _array(tensor, storages[tensor.storage.key])
            for name, tensor in tensors.items()
            if isinstance(name, str) and isinstance(tensor, _Tensor)
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ValueError(f"not a plain PyTorch weights file: {reason}") from None


def _value(file: io.BytesIO) -> Any:
    """The value described by the next pickle of a file, made of plain parts."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        place = marks.pop()
        items = stack[place:]
        del stack[place:]
        return items

    value: Any
    for step, (opcode, value, _) in enumerate(pickletools.genops(file)):
        name = opcode.name
        if step > _MOST_STEPS:
            raise ValueError(f"it has more than {_MOST_STEPS} steps")
        if name in _VALUES:
            stack.append(value)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "STOP":
            return stack.pop()
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            stack[-size:] = [tuple(stack[-size:])]
        elif name in ("APPEND", "APPENDS"):
            items = since_mark() if name == "APPENDS" else [stack.pop()]
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "GLOBAL":
            stack.append(_known_name(value))
        elif name == "BINPERSID":
            stack.append(_storage(*stack.pop()))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(_made(stack.pop(), arguments))
        elif name == "BUILD":  # the versions of modules, attached to a dict
            stack.pop()
        elif name != "PROTO":
            raise ValueError(f"it has the instruction {name}, which weights do not need")
    raise ValueError("it is truncated")


def _known_name(name: str) -> _Name:
    if name not in (_DICT, _TENSOR, *_KINDS):
        raise ValueError(f"it refers to {name.replace(' ', '.')!r}, which is not executed")
    return _Name(name)


def _made(what: Any, arguments: Any) -> Any:
    if what == _Name(_DICT) and arguments == ():
        return {}
    if what != _Name(_TENSOR):
        raise ValueError("it calls something other than constructors of tensors and dicts")
    storage, offset, shape, strides = arguments[:4]
    if not isinstance(storage, _Storage) or not len(shape) == len(strides) <= _MOST_AXES:
        raise ValueError("a tensor has no valid shape")
    numbers = (offset, *shape, *strides)
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError("a tensor has no valid shape")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _storage(word: str, kind: _Name, key: str, _: str, count: int, view: None) -> _Storage:
    if word != "storage" or view is not None or type(count) is not int or count < 0:
        raise ValueError("a storage has an unsupported type")
    return _Storage(str(key), _KINDS[kind.name], count)


def _storages(file: io.BytesIO, tensors: dict[Any, Any], keys: list[Any]) -> dict[str, Array]:
    """The numbers after the pickles, by the keys of the storages."""
    known = {one.storage.key: one.storage for one in tensors.values() if isinstance(one, _Tensor)}
    found = {}
    for key in keys:
        storage = known[key]
        if int.from_bytes(file.read(8), "little") != storage.length:
            raise ValueError(f"the length of storage {key!r} does not match the tensors")
        raw = file.read(storage.length * storage.dtype.itemsize)
        found[key] = np.frombuffer(raw, storage.dtype, storage.length)
    return found


def _array(tensor: _Tensor, numbers: Array) -> Array:
    """A tensor as an independent array in C order; its numbers may be strided."""
    shape, strides = tensor.shape, tensor.strides
    if tensor.storage.length != len(numbers):
        raise ValueError("two storages have the same name")
    size = 1
    for axis in shape:
        size *= axis
    last = tensor.offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if size > len(numbers) or (size and last >= len(numbers)):
        raise ValueError("a tensor is larger than its storage")
    if not size:
        return np.empty(shape, numbers.dtype)
    steps = [step * numbers.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], shape, steps).copy("C")
