"""Networks of PaddlePaddle as ONNX files: made-up ones against NumPy, and PP-LCNetV2 itself."""

import made_networks as made
import numpy as np
import pytest

from nearlabel.features import PictureEmbedding, PictureInput
from nearlabel.features.networks.catalog import NETWORKS
from nearlabel.features.networks.pplcnetv2 import paddle_program, pplcnetv2
from nearlabel.features.networks.sessions import Session
from nearlabel.features.networks.stored_networks import NetworkError


@pytest.fixture(scope="module")
def files():
    return made.paddle_files(made.paddle_weights())


@pytest.mark.parametrize("seed", range(3))
def test_the_network_computes_what_its_layers_say(seed):
    pytest.importorskip("onnxruntime")
    weights = made.paddle_weights(seed)
    model = pplcnetv2(*made.paddle_files(weights), size=made.SIZE, width=made.WIDTH)
    pixels = np.random.default_rng(seed).integers(0, 256, (3, made.SIZE, made.SIZE, 3), "uint8")
    x = PictureInput((made.SIZE, made.SIZE)).batch(pixels)
    expected = made.paddle_features(x, weights)
    got = Session(model, "made up").run("features", {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_weights_round_trip(files):
    steps, weights = paddle_program(*files)
    assert [step.kind for step in steps][:3] == ["feed", "conv2d", "batch_norm"]
    expected = made.paddle_weights()
    assert set(weights) == set(expected)
    for name, array in weights.items():
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.slow
def test_the_package_itself(cache):
    """The real download; the values are those of paddle2onnx for the same picture."""
    pytest.importorskip("onnxruntime")
    network = NETWORKS["pplcnetv2"]
    try:
        origins = network.get()
    except NetworkError as error:
        if "pip could not download" not in str(error):
            raise
        pytest.skip(str(error))
    assert origins == {"paddlelabel-ml 1.0.0": "downloaded by pip"}
    embedding = PictureEmbedding().fit(None)
    assert embedding.network_[:3] == ("pplcnetv2", network.sha256, 1024)
    (vector,) = embedding.transform([made.known_picture(224, 224)])
    known = {0: 0.0391, 2: 0.1942, 5: 8.4569, 100: 0.0, 378: 11.4425, 803: 8.5075}
    for place, value in known.items():
        assert vector[place] == pytest.approx(value, abs=1e-3)
