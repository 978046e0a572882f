"""EfficientNet-Lite0 as an ONNX file, from the weights of a package.

EfficientNet [1]_ without what is slow on small machines: no squeeze-and-excitation, and ReLU6
instead of swish. The weights are TensorFlow's: odd padding goes to the end, and batch normalization
has an epsilon of 1e-3.

References
----------
.. [1] M. Tan, Q. V. Le: EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks.
   ICML 2019.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.features.networks.onnx_graphs import OnnxGraph
from nearlabel.features.networks.torch_weights import torch_weights


def efficientnet_lite0(pth: bytes) -> bytes:
    """The network up to its pooled features, without the classifier, as an ONNX file."""
    layers = _Layers(torch_weights(pth))
    x, block = layers.convolved("x", "_conv_stem", "_bn0", stride=2), 0
    # Of each stage the blocks, and the stride of the first.
    for repeats, stride in ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1)):
        for repeat in range(repeats):
            before = x
            x = layers.block(x, f"_blocks.{block}.", 1 if repeat else stride)
            if repeat:
                x = layers.graph.node("Add", [x, before], f"_blocks.{block}.sum")
            block += 1
    x = layers.convolved(x, "_conv_head", "_bn1")
    x = layers.graph.node("GlobalAveragePool", [x], "pooled")
    layers.graph.node("Flatten", [x], "features", axis=1)
    return layers.graph.model([3, 224, 224], "features", 1280)


class _Layers:
    """The graph under construction, layer by layer."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.graph = OnnxGraph("efficientnet-lite0")
        self._weights = weights
        self.graph.weight("zero", np.array(0))
        self.graph.weight("six", np.array(6))

    def block(self, x: str, name: str, stride: int) -> str:
        """A wide depthwise convolution between two pointwise ones."""
        if f"{name}_expand_conv.weight" in self._weights:
            x = self.convolved(x, f"{name}_expand_conv", f"{name}_bn0")
        x = self.convolved(x, f"{name}_depthwise_conv", f"{name}_bn1", stride=stride)
        return self.convolved(x, f"{name}_project_conv", f"{name}_bn2", clipped=False)

    def convolved(
        self, x: str, convolution: str, norm: str, *, stride: int = 1, clipped: bool = True
    ) -> str:
        """A convolution, its normalization and, if `clipped`, ReLU6."""
        weight = self._weights[f"{convolution}.weight"]
        kernel = weight.shape[-1]
        # The size is even wherever the stride is 2, so the total padding is kernel - stride.
        before, after = (kernel - stride) // 2, (kernel - stride + 1) // 2
        x = self.graph.node(
            "Conv",
            [x, self.graph.weight(f"{convolution}.weight", weight)],
            convolution,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=len(weight) if "depthwise" in convolution else 1,
        )
        learned = [f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        for name in learned:
            self.graph.weight(name, self._weights[name])
        x = self.graph.node("BatchNormalization", [x, *learned], norm, epsilon=1e-3)
        return self.graph.node("Clip", [x, "zero", "six"], f"{norm}.clipped") if clipped else x
