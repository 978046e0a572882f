import hashlib

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.datasets.scene_brushes import Dice, Scene, ramp

SMALL = (96, 64)


@pytest.fixture(scope="module")
def scenes():
    return nl.datasets.paint_scenes(420, seed=3, size=SMALL)


def test_the_same_bytes_on_every_machine():
    pictures = nl.datasets.paint_scenes(60, seed=0, size=SMALL).pictures
    digest = hashlib.sha256(pictures.tobytes()).hexdigest()
    assert digest == "dbb0910f299410293afa8fb5979f2939c18878bade094678e15530c648f82a98"


def test_a_picture_does_not_depend_on_how_many_are_painted(scenes):
    few = nl.datasets.paint_scenes(5, seed=3, size=SMALL)
    np.testing.assert_array_equal(few.pictures, scenes.pictures[:5])
    np.testing.assert_array_equal(few.Y.toarray(), scenes.Y[:5].toarray())
    other = nl.datasets.paint_scenes(5, seed=4, size=SMALL)
    assert (other.pictures != few.pictures).any(axis=(1, 2, 3)).all()


def test_a_picture_shows_the_same_at_every_size(scenes):
    large = nl.datasets.paint_scenes(40, seed=3, size=(192, 128))
    halved = large.pictures.reshape(40, 64, 2, 96, 2, 3).mean(axis=(2, 4))
    np.testing.assert_array_equal(large.Y.toarray(), scenes.Y[:40].toarray())
    difference = np.abs(halved - scenes.pictures[:40]).mean(axis=(1, 2, 3))
    assert difference.max() < 8  # of 255; two different pictures differ by about 60
    assert np.abs(halved[1:] - scenes.pictures[:39]).mean() > 40


def test_labels(scenes):
    counts = scenes.Y.sum(axis=1)
    assert set(counts.tolist()) == {1, 2, 3}
    assert 1.2 < counts.mean() < 1.4
    assert scenes.label_names.tolist() == ["desert", "mountains", "sea", "sunset", "trees"]
    assert 15 <= len(np.unique(scenes.Y.toarray(), axis=0)) <= 17
    assert repr(scenes).startswith("PictureSet(420 pictures, 5 labels, 1.29 ")


def test_labels_depend_on_structure_rather_than_color(scenes):
    pixels = scenes.pictures.astype(float)
    colors = pixels.mean(axis=(1, 2))
    rows, columns = np.array_split(np.arange(64), 7), np.array_split(np.arange(96), 7)
    blocks = [pixels[:, row][:, :, column] for row in rows for column in columns]
    grid = np.hstack([part for block in blocks for part in (block.mean((1, 2)), block.std((1, 2)))])

    def precision(X):
        X = MinMaxScaler().fit_transform(X)
        model = nl.MLkNN(10).fit(X[:300], scenes.Y[:300])
        scores = model.predict_proba(X[300:])
        return nl.metrics.average_precision(scenes.Y[300:], scores, convention="paper")

    assert precision(colors) < 0.8
    assert precision(grid) > 0.87


@pytest.mark.slow  # 1,000 pictures go through a network
def test_features_predict_the_labels_and_color_does_not():
    pytest.importorskip("PIL")
    pytest.importorskip("onnxruntime")
    scenes = nl.datasets.paint_scenes(1000, seed=0)

    def precision(X, **parameters):
        model = nl.MLkNN(10, **parameters).fit(X[:600], scenes.Y[:600])
        scores = model.predict_proba(X[600:])
        return nl.metrics.average_precision(scenes.Y[600:], scores, convention="paper")

    moments = nl.features.GridMoments().fit_transform(scenes.pictures)
    embedding = nl.features.PictureEmbedding("efficientnet-lite0").fit(None)
    assert precision(scenes.pictures.mean(axis=(1, 2))) < 0.8
    assert precision(MinMaxScaler().fit(moments[:600]).transform(moments)) >= 0.9
    assert precision(embedding.transform(scenes.pictures), metric="cosine") >= 0.9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, ["n ", "0"]),
        ({"n": 1, "seed": -1}, ["seed", "-1"]),
        ({"n": 1, "size": 100}, ["size", "100"]),
        ({"n": 1, "size": (100, 8)}, ["height", "8"]),
        ({"n": 1, "size": (10**6, 80)}, ["width", "1000000"]),
        ({"n": 10**12}, ["pictures", "1,000,000,000,000", "size"]),
    ],
)
def test_invalid_arguments(arguments, words):
    with pytest.raises((TypeError, ValueError, MemoryError)) as error:
        nl.datasets.paint_scenes(**arguments)
    assert all(word in str(error.value) for word in words)


def test_a_canvas_has_soft_edges_and_shapes_may_leave_it():
    canvas = Scene(Dice(0), {"sea"}, 30, 20)
    canvas.lay(np.ones((3, 1, 1), np.float32), canvas.edge(canvas.y - 0.5), canvas.from_line(0))
    assert canvas.pixels()[:, 0, 0].tolist() == [0] * 10 + [255] * 10
    for place in ((-9.0, 0.5), (0.5, 9.0), (0.0, 0.0), (1.5, 1.0)):
        rows, columns = canvas.box(*place, 0.1, 0.1)
        assert (canvas.rgb[:, rows, columns].size == 0) == (9 in np.abs(place))
        assert 0 <= rows.start <= rows.stop <= 20
        assert 0 <= columns.start <= columns.stop <= 30


def test_noise_passes_through_its_lattice():
    lattice = Dice(1, 2).reals(5, 6)
    v, u = (np.linspace(0, 1, count, dtype=np.float32) for count in (4, 5))
    at_knots = Dice(1, 2).noise(3, 4, v, u)
    np.testing.assert_allclose(at_knots, lattice[:4, :5], atol=1e-6)
    assert at_knots.dtype == np.float32
    assert ramp(np.array([-1, 0, 0.5, 1, 2]), 0, 1).tolist() == [0, 0, 0.5, 1, 1]
