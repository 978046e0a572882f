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
from nearlabel.features.networks.protobuf import Value, fields, text

_HEAD = struct.Struct("<IQIi")  # version, levels of detail, version, description size


@dataclass
class Step:
    """An operator of a program: its type, the names it reads and writes by role, its attributes."""

    kind: str = ""
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, list[Any]] = field(default_factory=dict)


def paddle_program(program: bytes, weights: bytes) -> tuple[list[Step], dict[str, Array]]:
    """The steps of `inference.pdmodel` in order, and the arrays of `inference.pdiparams`."""
    steps, names = [], []
    for number, block in fields(program):
        for inner, value in fields(block) if number == 1 else ():
            if inner == 4:
                steps.append(_step(value))
            elif inner == 3:
                variable = dict(fields(value))
                if variable.get(3):  # persistable: a weight, or a placeholder of input and output
                    names.append(text(variable[1]))
    return steps, _arrays(weights, sorted({*names} - {"feed", "fetch"}))


def _step(message: Value) -> Step:
    step = Step()
    for number, value in fields(message):
        if number == 3:
            step.kind = text(value)
        elif number in (1, 2):
            (_, role), *names = fields(value)
            roles = step.inputs if number == 1 else step.outputs
            roles[text(role)] = [text(name) for _, name in names]
        elif number == 4:
            (_, name), *values = fields(value)
            step.settings[text(name)] = [
                text(content) if kind == 5 else content
                for kind, content in values
                if kind in (3, 4, 5, 6, 10, 11, 12, 13, 15)  # integers, floats, strings, booleans
            ]
    return step


def _arrays(content: bytes, names: list[str]) -> dict[str, Array]:
    """The float32 arrays of a file, which are stored in the order of their names."""
    arrays, place = {}, 0
    for name in names:
        *_, size = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        described = fields(content[place : place + size])
        shape = [int(value) for number, value in described if number == 2]
        place += size
        arrays[name] = np.frombuffer(content, "<f4", math.prod(shape), place).reshape(shape)
        place += arrays[name].nbytes
    return arrays
