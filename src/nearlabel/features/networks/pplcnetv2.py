"""PP-LCNetV2 as an ONNX file, from the files of PaddlePaddle in a package.

A network for processors without accelerators, by the authors of PP-LCNet [1]_. Its program and its
weights are read without PaddlePaddle; the field numbers are those of its framework.proto.

References
----------
.. [1] C. Cui et al.: PP-LCNet: A Lightweight CPU Convolutional Neural Network. arXiv 2109.15099,
   2021.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.onnx_graphs import OnnxGraph
from nearlabel.features.networks.protobuf import Value, fields, text

_SAME = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "elementwise_add": "Add",
    "elementwise_mul": "Mul",
}


def pplcnetv2(program: bytes, weights: bytes, *, size: int = 224, width: int = 1024) -> bytes:
    """The network up to its last pooling, without the classifier, as an ONNX file."""
    steps, arrays = paddle_program(program, weights)
    graph, names = OnnxGraph("pplcnetv2"), {}
    last = [step.outputs["Out"][0] for step in steps if step.kind == "pool2d"][-1]
    for step in steps:
        if step.kind == "feed":
            names[step.outputs["Out"][0]] = "x"
        elif _add(graph, step, arrays, names) == last:
            break
    graph.node("Flatten", [last], "features", axis=1)
    return graph.model([3, size, size], "features", width)


def _add(graph: OnnxGraph, step: Step, arrays: dict[str, Array], names: dict[str, str]) -> str:
    """Add the ONNX node for a step; returns the name of its output."""

    def read(role: str) -> str:
        """The name of an input of a step; weights are added to the graph."""
        (name,) = step.inputs[role]
        if name not in arrays:
            return names.get(name, name)
        values = arrays[name]
        per_channel = values.ndim == 1 and step.kind in _SAME
        return graph.weight(name, values.reshape(1, -1, 1, 1) if per_channel else values)

    match step.kind:
        case "conv2d" | "depthwise_conv2d":
            return graph.node(
                "Conv",
                [read("Input"), read("Filter")],
                step.outputs["Output"][0],
                strides=step.settings["strides"],
                pads=step.settings["paddings"] * 2,
                group=step.settings["groups"][0],
                dilations=step.settings["dilations"],
                kernel_shape=list(arrays[step.inputs["Filter"][0]].shape[2:]),
            )
        case "batch_norm":
            inputs = [read(role) for role in ("X", "Scale", "Bias", "Mean", "Variance")]
            (epsilon,) = step.settings["epsilon"]
            return graph.node("BatchNormalization", inputs, step.outputs["Y"][0], epsilon=epsilon)
        case "pool2d":  # all of them average whole pictures
            return graph.node("GlobalAveragePool", [read("X")], step.outputs["Out"][0])
        case _:
            inputs = [read(role) for role in ("X", "Y") if role in step.inputs]
            return graph.node(_SAME[step.kind], inputs, step.outputs["Out"][0])


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
    head = struct.Struct("<IQIi")  # version, levels of detail, version, description size
    for name in names:
        *_, size = head.unpack_from(content, place)
        place += head.size
        described = fields(content[place : place + size])
        shape = [int(value) for number, value in described if number == 2]
        place += size
        arrays[name] = np.frombuffer(content, "<f4", math.prod(shape), place).reshape(shape)
        place += arrays[name].nbytes
    return arrays
