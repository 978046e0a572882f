"""PP-LCNetV2 as an ONNX file, from the files of PaddlePaddle in a package.

A network for processors without accelerators, by the authors of PP-LCNet [1]_.

References
----------
.. [1] C. Cui et al.: PP-LCNet: A Lightweight CPU Convolutional Neural Network. arXiv 2109.15099,
   2021.
"""

from __future__ import annotations

from typing import Any

from nearlabel.common.arrays import Array
from nearlabel.features.networks.onnx_graphs import OnnxGraph
from nearlabel.features.networks.paddle_programs import Step, paddle_program

_SAME = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "elementwise_add": "Add",
    "elementwise_mul": "Mul",
}
SIZE, WIDTH = 224, 1024


def pplcnetv2(program: bytes, weights: bytes, *, size: int = SIZE, width: int = WIDTH) -> bytes:
    """The network up to its last pooling, without the classifier, as an ONNX file."""
    steps, arrays = paddle_program(program, weights)
    graph, names = OnnxGraph("pplcnetv2"), {}
    poolings = [place for place, step in enumerate(steps) if step.kind == "pool2d"]
    if not poolings:
        raise ValueError("not PP-LCNetV2: the program has no pooling")
    try:
        for step in steps[: poolings[-1] + 1]:
            if step.kind == "feed":
                names[step.outputs["Out"][0]] = "x"
            else:
                last = _add(graph, step, arrays, names)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(
            f"not PP-LCNetV2: {error} is missing in the operator {step.kind!r}"
        ) from None
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

    def setting(name: str) -> Any:
        return step.settings[name][0]

    if step.kind in ("conv2d", "depthwise_conv2d"):
        pads = step.settings["paddings"]
        if setting("padding_algorithm") != "EXPLICIT" or len(pads) != 2:
            raise ValueError("not PP-LCNetV2: unsupported padding of a convolution")
        return graph.node(
            "Conv",
            [read("Input"), read("Filter")],
            step.outputs["Output"][0],
            strides=step.settings["strides"],
            pads=pads * 2,
            group=setting("groups"),
            dilations=step.settings["dilations"],
            kernel_shape=list(arrays[step.inputs["Filter"][0]].shape[2:]),
        )
    if step.kind == "batch_norm":
        inputs = [read(role) for role in ("X", "Scale", "Bias", "Mean", "Variance")]
        epsilon = float(setting("epsilon"))
        return graph.node("BatchNormalization", inputs, step.outputs["Y"][0], epsilon=epsilon)
    if step.kind == "pool2d":
        if setting("pooling_type") != "avg" or not (
            setting("adaptive") or setting("global_pooling")
        ):
            raise ValueError("not PP-LCNetV2: unsupported pooling")
        return graph.node("GlobalAveragePool", [read("X")], step.outputs["Out"][0])
    if step.kind not in _SAME:
        raise ValueError(f"not PP-LCNetV2: it has the operator {step.kind!r}")
    inputs = [read(role) for role in ("X", "Y") if role in step.inputs]
    return graph.node(_SAME[step.kind], inputs, step.outputs["Out"][0])
