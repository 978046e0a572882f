"""Networks in PaddlePaddle files, read without PaddlePaddle: a program and its weights.

The field numbers are those of Paddle's framework.proto.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.protobuf import fields, part, signed, text, whole

_FLOAT32 = 5  # VarType.FP32
_HEAD = struct.Struct("<IQIi")  # version, levels of detail, version, description size
_MOST_AXES = 8


@dataclass
class Step:
    """An operator of a program: its type, the names it reads and writes by role, its attributes."""

    kind: str = ""
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, list[Any]] = field(default_factory=dict)


def paddle_program(program: bytes, weights: bytes) -> tuple[list[Step], dict[str, Array]]:
    """The steps of `inference.pdmodel` in order, and the arrays of `inference.pdiparams`.

    Raises
    ------
    ValueError
        If these are other files or do not belong together; one sentence.
    """
    try:
        steps, names = _steps(program)
        return steps, _arrays(weights, names)
    except (ValueError, KeyError, struct.error) as error:
        raise ValueError(f"not a PaddlePaddle network: {error}") from None


def _steps(program: bytes) -> tuple[list[Step], list[str]]:
    """The steps of the program's blocks, and the names of its weights."""
    steps, names = [], []
    for number, block in fields(program):
        for inner, value in fields(part(block)) if number == 1 else ():
            if inner == 4:
                steps.append(_step(part(value)))
            elif inner == 3:
                variable = dict(fields(part(value)))
                if variable.get(3):  # persistable: a weight, or a placeholder of input and output
                    names.append(text(variable[1]))
    return steps, [name for name in names if name not in ("feed", "fetch")]


def _step(message: memoryview) -> Step:
    step = Step()
    for number, value in fields(message):
        if number == 3:
            step.kind = text(value)
        elif number in (1, 2):
            (_, role), *names = fields(part(value))
            roles = step.inputs if number == 1 else step.outputs
            roles[text(role)] = [text(name) for _, name in names]
        elif number == 4:
            name, values = _setting(part(value))
            step.settings[name] = values
    return step


def _setting(message: memoryview) -> tuple[str, list[Any]]:
    """The name and the values of an attribute: integers, floats and strings."""
    name, values = "", list[Any]()
    for number, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 5:
            values.append(text(value))
        elif number in (3, 4, 6, 10, 11, 12, 13, 15) and not isinstance(value, memoryview):
            values.append(signed(value) if isinstance(value, int) else value)
    return name, values


def _arrays(content: bytes, names: list[str]) -> dict[str, Array]:
    """The arrays of a file, stored in the order of their names."""
    arrays, place = {}, 0
    for name in sorted(names):
        version, levels, version_again, size = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        if version or levels or version_again or not 0 <= size <= len(content) - place:
            raise ValueError(f"the array {name!r} has an unsupported format")
        described = list(fields(content[place : place + size]))
        shape = [whole(value) for number, value in described if number == 2]
        if (1, _FLOAT32) not in described or len(shape) > _MOST_AXES or min(shape, default=1) < 1:
            raise ValueError(f"the array {name!r} is not float32")
        place += size
        count = math.prod(shape)
        if 4 * count > len(content) - place:
            raise ValueError(f"the array {name!r} is truncated")
        arrays[name] = np.frombuffer(content, "<f4", count, place).reshape(shape)
        place += 4 * count
    if place != len(content):
        raise ValueError("there are more weights than the program names")
    return arrays
