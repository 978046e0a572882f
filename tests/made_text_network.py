"""A small network for texts: each piece has its own vector, independent of its context."""

import numpy as np

from nearlabel.features.networks.protobuf import field

FLOAT32, INT64 = 1, 7  # of ONNX


def _described(name, kind, sizes):
    shape = b"".join(field(1, field(2, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def text_network(table, inputs=("input_ids", "attention_mask")):
    """An ONNX file whose output has, for each piece, its row of a table of float32."""
    table = np.ascontiguousarray(table, "<f4")
    node = field(1, "table") + field(1, inputs[0]) + field(2, "pieces") + field(4, "Gather")
    sizes = b"".join(field(1, size) for size in table.shape)
    weight = sizes + field(2, FLOAT32) + field(8, "table") + field(9, table.tobytes())
    graph = field(1, node) + field(2, "texts") + field(5, weight)
    for name in inputs:
        graph += field(11, _described(name, INT64, ["batch", "sequence"]))
    graph += field(12, _described("pieces", FLOAT32, ["batch", "sequence", "width"]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))
