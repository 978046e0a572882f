import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from drawn_pictures import exif, file_of, quadrants
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.features import GridMoments, UnreadablePicture

Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)


def literal_luv(red, green, blue):
    """Of one pixel of sRGB under D65, by the formulas of the CIE."""

    def linear(shade):
        shade /= 255
        return shade / 12.92 if shade <= 0.04045 else ((shade + 0.055) / 1.055) ** 2.4

    r, g, b = linear(red), linear(green), linear(blue)
    x = 0.412453 * r + 0.357580 * g + 0.180423 * b
    y = 0.212671 * r + 0.715160 * g + 0.072169 * b
    z = 0.019334 * r + 0.119193 * g + 0.950227 * b
    white = 0.95047 + 15 * 1.0 + 3 * 1.08883
    lightness = 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y
    if red == green == blue == 0:
        return 0.0, 0.0, 0.0
    below = x + 15 * y + 3 * z
    u = 13 * lightness * (4 * x / below - 4 * 0.95047 / white)
    v = 13 * lightness * (9 * y / below - 9 * 1.0 / white)
    return lightness, u, v


def literal_moments(rgb):
    """294 moments by loops: 49 means and 49 variances of each band."""
    height, width, _ = rgb.shape
    colors = {color: literal_luv(*color) for color in set(map(tuple, rgb.reshape(-1, 3).tolist()))}
    luv = [[colors[tuple(pixel)] for pixel in row] for row in rgb.tolist()]
    moments = []
    for band in range(3):
        means, variances = [], []
        for i in range(7):
            for j in range(7):
                block = [
                    luv[row][column][band]
                    for row in range(i * height // 7, (i + 1) * height // 7)
                    for column in range(j * width // 7, (j + 1) * width // 7)
                ]
                means.append(sum(block) / len(block))
                variances.append(sum((value - means[-1]) ** 2 for value in block) / len(block))
        moments += means + variances
    return moments


PICTURES = {
    "noise": RNG.integers(0, 256, (23, 40, 3), dtype=np.uint8),
    "dark": RNG.integers(0, 20, (40, 23, 3), dtype=np.uint8),
    "black": np.zeros((9, 9, 3), np.uint8),
    "blue": np.full((7, 7, 3), (0, 0, 255), np.uint8),
    "quadrants": quadrants(),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_formulas(name):
    found = GridMoments().fit_transform([PICTURES[name]])
    assert found.shape == (1, 294)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found[0], literal_moments(PICTURES[name]), rtol=0, atol=1e-9)


def test_the_formulas_on_photos(natural_scenes):
    paths = natural_scenes[0][7::999]
    check_photos(paths)


@pytest.mark.slow
def test_the_formulas_on_100_photos(natural_scenes):
    check_photos(natural_scenes[0][::20])


def check_photos(paths):
    expected = [literal_moments(np.asarray(Image.open(path).convert("RGB"))) for path in paths]
    found = GridMoments().transform(paths)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_colors_are_those_of_scikit_image():
    color = pytest.importorskip("skimage.color")
    rgb = RNG.integers(0, 256, (49, 63, 3), dtype=np.uint8)
    blocks = color.rgb2luv(rgb).reshape(7, 7, 7, 9, 3).transpose(4, 0, 2, 1, 3).reshape(3, 49, 63)
    expected = np.stack([blocks.mean(axis=2), blocks.var(axis=2)], axis=1).ravel()
    np.testing.assert_allclose(GridMoments().transform([rgb])[0], expected, rtol=0, atol=1e-9)


def test_flat_colors_do_not_vary():
    found = GridMoments().transform([np.full((50, 70, 3), (200, 100, 50), np.uint8)])
    assert np.abs(found.reshape(3, 2, 49)[:, 1]).max() < 1e-20


def test_small_pictures():
    """With fewer pixels than blocks per side, a block is the pixel where it begins."""
    small = RNG.integers(0, 256, (3, 10, 3), dtype=np.uint8)
    tall = small[np.arange(7) * 3 // 7]
    np.testing.assert_array_equal(*GridMoments().transform([small, tall]))
    one = GridMoments().transform([small[:1, :1]]).reshape(3, 2, 49)
    assert not one[:, 1].any()
    assert (one[:, 0] == one[:, 0, :1]).all()


def test_names():
    names = GridMoments().get_feature_names_out()
    assert names[[0, 48, 49, 98, 293]].tolist() == [
        *("L_mean_0_0", "L_mean_6_6", "L_variance_0_0", "u_mean_0_0", "v_variance_6_6"),
    ]
    moments = GridMoments().set_output(transform="pandas").fit_transform([quadrants()])
    assert moments.columns.tolist() == names.tolist()
    assert moments["L_mean_0_6"][0] > moments["L_mean_0_0"][0]  # green is lighter than red


def test_parameters():
    rgb = [RNG.integers(0, 256, (30, 40, 3), dtype=np.uint8)]
    coarse = GridMoments(1, spread="deviation").fit_transform(rgb).reshape(3, 2)
    plain = GridMoments(1).fit_transform(rgb).reshape(3, 2)
    np.testing.assert_allclose(coarse**2, [[one[0] ** 2, one[1]] for one in plain])
    assert GridMoments(2).get_feature_names_out().shape == (24,)
    for wrong in (
        {"grid": 0},
        {"grid": 2.5},
        {"spread": "range"},
        {"max_pixels": 0},
        {"n_jobs": 0},
    ):
        ((name, value),) = wrong.items()
        with pytest.raises((ValueError, TypeError), match=f"{name}.*{value}"):
            GridMoments(**wrong).fit(rgb).transform(rgb)


def test_large_pictures_are_reduced():
    """By a power of two, by means of squares; JPEG files by their decoder, to nearly the same."""
    smooth = Image.fromarray(quadrants(8, 12)).resize((401, 300), Image.Resampling.BICUBIC)
    rgb = np.asarray(smooth)
    half = np.asarray(smooth.reduce(2))
    all_pixels, reduced = (GridMoments(max_pixels=most) for most in (None, 30_201))
    (found,) = reduced.transform([rgb])
    np.testing.assert_array_equal(found, all_pixels.transform([half])[0])
    np.testing.assert_array_equal(found, GridMoments(max_pixels=120_299).transform([rgb])[0])
    assert np.abs(found - all_pixels.transform([rgb])[0]).max() > 1e-3
    jpeg = file_of(np.ascontiguousarray(rgb), "JPEG", quality=95, subsampling=0)
    for most in (30_201, 8_000, 500):  # 2, 4 and 16 times smaller
        (ours,) = GridMoments(max_pixels=most).transform([jpeg]).reshape(1, 3, 2, 49)
        (theirs,) = GridMoments(max_pixels=most).transform([rgb]).reshape(1, 3, 2, 49)
        np.testing.assert_allclose(ours[:, 0], theirs[:, 0], atol=3)


def test_turned_jpegs_are_reduced_likewise():
    rgb = np.kron(quadrants(20, 30), np.ones((8, 8, 1), np.uint8))
    stored = np.ascontiguousarray(rgb.swapaxes(0, 1)[::-1])
    moments = GridMoments(max_pixels=3000)
    files = [file_of(rgb, "JPEG", quality=95), file_of(stored, "JPEG", quality=95, exif=exif(6))]
    np.testing.assert_allclose(*moments.transform(files).reshape(2, 3, 2, 49)[:, :, 0], atol=3)


def test_threads_and_forms_of_input_change_nothing():
    arrays = [RNG.integers(0, 256, (20 + at, 30, 3), dtype=np.uint8) for at in range(25)]
    expected = GridMoments().transform(arrays)
    for n_jobs in (1, 2, 5, -1):
        found = GridMoments(n_jobs=n_jobs).transform(file_of(one, "PNG") for one in arrays)
        np.testing.assert_array_equal(found, expected)
    assert GridMoments().transform([]).shape == (0, 294)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_broken_picture_is_named(n_jobs, tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0")
    moments = GridMoments(n_jobs=n_jobs)
    with pytest.raises(UnreadablePicture, match=r"broken\.jpg is a damaged JPEG"):
        moments.transform([quadrants(), path])
    with pytest.raises(UnreadablePicture, match="picture 2 is empty"):
        moments.transform([quadrants(), quadrants(), io.BytesIO()])


@pytest.mark.parametrize("one", ["a.jpg", Path("a.jpg"), b"\xff\xd8", quadrants(), io.BytesIO(), 5])
def test_a_single_picture_is_refused(one):
    with pytest.raises(TypeError, match=r"\[picture\]"):
        GridMoments().transform(one)


def test_copies_and_files(tmp_path):
    moments = GridMoments(3, spread="deviation", max_pixels=None, n_jobs=2)
    pictures = [RNG.integers(0, 256, (9, 9, 3), dtype=np.uint8) for _ in range(12)]
    expected = moments.fit_transform(pictures)
    model = nl.make_pipeline(moments, MinMaxScaler(), nl.MLkNN(2)).fit(pictures, np.eye(12)[:, :3])
    nl.save(model, tmp_path / "moments.model")
    stored = nl.load(tmp_path / "moments.model")
    assert stored[0].get_params() == moments.get_params()
    np.testing.assert_array_equal(stored.predict(pictures), model.predict(pictures))
    for copy in (clone(moments), pickle.loads(pickle.dumps(moments)), stored[0]):
        np.testing.assert_array_equal(copy.transform(pictures), expected)
    nl.save(moments.set_output(transform="pandas"), tmp_path / "moments.model")
    assert list(nl.load(tmp_path / "moments.model").transform(pictures)) == list(
        moments.get_feature_names_out()
    )


@pytest.mark.slow
def test_natural_scenes_do_better_than_in_print(natural_scenes):
    """Ten folds against the row ML-KNN of Table 5 of Zhang and Zhou, on all five metrics."""
    paths, Y = natural_scenes
    X = GridMoments(n_jobs=-1).transform(paths)
    printed = {
        "hamming_loss": 0.169,
        "one_error": 0.300,
        "coverage": 0.939,
        "ranking_loss": 0.168,
        "average_precision": 0.803,
    }
    found = {name: [] for name in printed}
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        model = nl.make_pipeline(MinMaxScaler(), nl.MLkNN(10)).fit(X[train], Y[train])
        scores, labels = model.predict_proba(X[test]), model.predict(X[test])
        for name in printed:
            metric = getattr(nl.metrics, name)
            is_of_sets = name == "hamming_loss"
            options = {} if is_of_sets else {"convention": "paper"}
            found[name].append(metric(Y[test], labels if is_of_sets else scores, **options))
    for name, value in printed.items():
        mean = np.mean(found[name])
        assert mean > value if name == "average_precision" else mean < value, (name, mean)
