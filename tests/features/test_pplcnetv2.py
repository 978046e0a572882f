"""Networks of PaddlePaddle as ONNX files: made-up ones against NumPy, and PP-LCNetV2 itself."""

from __future__ import annotations

import random
from contextlib import suppress

import made_networks as made
import numpy as np
import pytest
from fuzzing.mutations import mutated_bytes

from nearlabel.features import PictureEmbedding, PictureInput
from nearlabel.features.networks.catalog import NETWORKS
from nearlabel.features.networks.packages import NetworkError
from nearlabel.features.networks.paddle_programs import paddle_program
from nearlabel.features.networks.pplcnetv2 import pplcnetv2
from nearlabel.features.networks.protobuf import field
from nearlabel.features.networks.sessions import Session
from nearlabel.features.networks.stored_networks import known_picture


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


def test_files_that_do_not_belong_together_are_refused(files):
    program, weights = files
    for wrong in (weights[:-1], weights + b"\0", weights[4:], b""):
        with pytest.raises(ValueError, match="not a PaddlePaddle network"):
            paddle_program(program, wrong)
    for wrong in (b"", program[:-1], weights, field(1, 5)):
        with pytest.raises(ValueError, match="not a PaddlePaddle network|not PP-LCNetV2"):
            pplcnetv2(wrong, weights)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"sigmoid", b"sigmoie", "'sigmoie'"),
        (b"EXPLICIT", b"VALIDVAL", "padding"),
        (b"avg", b"max", "pooling"),
        (b"strides", b"stridez", "strides"),
        (b"Filter", b"Silter", "Filter"),
    ],
)
def test_other_networks_are_refused(files, old, new, message):
    program, weights = files
    with pytest.raises(ValueError, match=f"not PP-LCNetV2: .*{message}"):
        pplcnetv2(program.replace(old, new), weights)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutations_are_read_or_refused(files, count):
    source = random.Random(0)
    for _ in range(count):
        both = list(files)
        which = source.randrange(2)
        both[which] = mutated_bytes(both[which], b"", source)
        with suppress(ValueError):  # any other error is a bug
            pplcnetv2(*both)


@pytest.mark.slow
def test_the_package_itself(cache):
    """The real download; the values are those of paddle2onnx for the same picture."""
    pytest.importorskip("onnxruntime")
    network = NETWORKS["pplcnetv2"]
    try:
        obtained = network.get()
    except NetworkError as error:
        if "pip could not download" not in str(error):
            raise
        pytest.skip(str(error))
    assert obtained.origins == {"paddlelabel-ml 1.0.0": "downloaded by pip"}
    embedding = PictureEmbedding().fit(None)
    assert embedding.network_[:3] == ("pplcnetv2", network.sha256, 1024)
    (vector,) = embedding.transform([known_picture(224, 224)])
    for place, value in network.known.items():
        assert vector[place] == pytest.approx(value, abs=1e-3)
