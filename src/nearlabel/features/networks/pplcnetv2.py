"""PP-LCNetV2 as an ONNX file, from the files of PaddlePaddle in a package.

A network for processors without accelerators, by the authors of PP-LCNet [1]_.

References
----------
.. [1] C. Cui et al.: PP-LCNet: A Lightweight CPU Convolutional Neural Network. arXiv 2109.15099,
   2021.
"""

from __future__ import annotations

from nearlabel.common.arrays import Array
from nearlabel.features.networks.onnx_graphs import OnnxGraph
from nearlabel.features.networks.paddle_programs import Step, paddle_program

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
