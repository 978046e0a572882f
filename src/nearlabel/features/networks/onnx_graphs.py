"""ONNX files, written and inspected without the package onnx.

The field numbers are those of onnx.proto3, the published definition of the format.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.protobuf import Value, field, fields, float_field

_FLOAT32 = 1  # TensorProto.FLOAT
# The parts of a file that contain tensors, by the numbers of their fields.
_PARTS = {
    "model": {7: "graph", 25: "function"},
    "function": {7: "node"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}

Attribute = int | float | list[int]


class OnnxGraph:
    """A graph built node by node, from one float32 input to one float32 output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[bytes] = []
        self._weights: dict[str, Array] = {}

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> str:
        """Add a node with an ONNX operator, such as "Conv"; returns the name of its output."""
        self._nodes.append(
            b"".join(field(1, name) for name in inputs)
            + field(2, output)
            + field(4, kind)
            + b"".join(_attribute(name, value) for name, value in attributes.items())
        )
        return output

    def weight(self, name: str, values: Array) -> str:
        """Add an array that nodes can use as an input; returns its name."""
        self._weights[name] = values
        return name

    def model(self, picture: Sequence[int], output: str, width: int, *, input: str = "x") -> bytes:  # noqa: A002
        """The file: from `input`, any number of pictures of one shape, to `output`, (n, width)."""
        graph = (
            b"".join(field(1, node) for node in self._nodes)
            + field(2, self._name)
            + b"".join(field(5, _tensor(*weight)) for weight in self._weights.items())
            + field(11, _described(input, ["N", *picture]))
            + field(12, _described(output, ["N", width]))
        )
        # Versions of ONNX 1.10: any onnxruntime since 2021 reads them.
        return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        content, kind = float_field(2, value), 1  # AttributeProto.FLOAT
    elif isinstance(value, int):
        content, kind = field(3, value), 2  # INT
    else:
        content, kind = b"".join(field(8, number) for number in value), 7  # INTS
    return field(5, field(1, name) + content + field(20, kind))


def _tensor(name: str, values: Array) -> bytes:
    raw = np.ascontiguousarray(values, "<f4").tobytes()
    sizes = b"".join(field(1, size) for size in values.shape)
    return sizes + field(2, _FLOAT32) + field(8, name) + field(9, raw)


def _described(name: str, sizes: Sequence[int | str]) -> bytes:
    """The name, type and shape of an input or output; a string denotes any size."""
    shape = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, _FLOAT32) + field(2, shape)))


def refuse_other_files(message: Value | bytes, kind: str = "model", depth: int = 0) -> None:
    """Refuse an ONNX file with weights in other files: ValueError, also if it is not an ONNX file.

    `kind` and `depth` are those of a part of the file, such as a node: this function calls itself.
    """
    if depth > 32:  # a graph in a node takes three levels
        raise ValueError("its graphs are nested too deep")
    for number, value in fields(message):
        if kind == "tensor":
            if number == 13 or (number == 14 and value != 0):  # external_data, data_location
                raise ValueError("its weights are in other files; save it as a single file")
        elif number in _PARTS[kind]:
            refuse_other_files(value, _PARTS[kind][number], depth + 1)
