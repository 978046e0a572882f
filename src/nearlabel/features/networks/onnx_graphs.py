"""ONNX files, written and inspected without the package onnx.

The field numbers are those of onnx.proto3, the published definition of the format.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.protobuf import field, fields, float_field, part, whole

_IR_VERSION, _OPSET = 8, 13  # of ONNX 1.10: any onnxruntime since 2021 reads them
_FLOAT32 = 1  # TensorProto.FLOAT
_KINDS = {float: 1, int: 2, list: 7}  # AttributeProto.FLOAT, INT, INTS
_DEEPEST = 8  # nested graphs, as in loops

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
        opset = field(1, "") + field(2, _OPSET)
        return field(1, _IR_VERSION) + field(7, graph) + field(8, opset)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        content = float_field(2, value)
    elif isinstance(value, int):
        content = field(3, value)
    else:
        content = b"".join(field(8, one) for one in value)
    return field(5, field(1, name) + content + field(20, _KINDS[type(value)]))


def _tensor(name: str, values: Array) -> bytes:
    raw = np.ascontiguousarray(values, "<f4").tobytes()
    sizes = b"".join(field(1, size) for size in values.shape)
    return sizes + field(2, _FLOAT32) + field(8, name) + field(9, raw)


def _described(name: str, sizes: Sequence[int | str]) -> bytes:
    """The name, type and shape of an input or output; a string denotes any size."""
    shape = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, _FLOAT32) + field(2, shape)))


def refuse_other_files(model: bytes) -> None:
    """Refuse an ONNX file with weights in other files.

    Raises
    ------
    ValueError
        Also if it is not an ONNX file.
    """
    for number, value in fields(model):
        if number == 7:  # ModelProto.graph
            _look_through_graph(part(value), 0)
        elif number == 25:  # ModelProto.functions, whose field 7 has their nodes
            for inner, node in fields(part(value)):
                if inner == 7:
                    _look_through_node(part(node), 0)


def _look_through_graph(graph: memoryview, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"its graphs are nested more than {_DEEPEST} deep")
    for number, value in fields(graph):
        if number == 1:
            _look_through_node(part(value), depth)
        elif number == 5:  # initializer
            _look_at_tensor(part(value))
        elif number == 15:  # sparse_initializer: values and indices
            for _, tensor in _parts(value, 1, 2):
                _look_at_tensor(tensor)


def _look_through_node(node: memoryview, depth: int) -> None:
    for _, attribute in _parts(node, 5):
        for number, value in _parts(attribute, 5, 6, 10, 11, 22, 23):
            if number in (5, 10):  # t, tensors
                _look_at_tensor(value)
            elif number in (6, 11):  # g, graphs
                _look_through_graph(value, depth + 1)
            else:  # sparse_tensor, sparse_tensors
                for _, tensor in _parts(value, 1, 2):
                    _look_at_tensor(tensor)


def _look_at_tensor(tensor: memoryview) -> None:
    for number, value in fields(tensor):
        if number == 13 or (number == 14 and whole(value) != 0):  # external_data, data_location
            raise ValueError("its weights are in other files; save it as a single file")


def _parts(message: int | float | memoryview, *numbers: int) -> list[tuple[int, memoryview]]:
    return [(number, part(value)) for number, value in fields(part(message)) if number in numbers]
