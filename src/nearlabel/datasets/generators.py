"""Synthetic data with known structure, for examples, tests and benchmarks of any size."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.validation import check_integer, check_real
from nearlabel.datasets.dataset import Dataset

_KEPT = 0.85  # chance that an item shows a label of its scene: real label lists are incomplete


def make_local_labels(
    n_samples: int = 2000,
    n_features: int = 20,
    n_labels: int = 40,
    *,
    labels_per_sample: float = 3.0,
    n_clusters: int = 8,
    noise: float = 0.05,
    train_share: float = 0.75,
    random_state: int | None = 0,
) -> Dataset:
    """Make items whose labels are local: nearby items share labels, distant regions use others.

    Space is divided into clusters, a cluster into scenes of about 25 items each. Each cluster has
    its part of the vocabulary. A scene draws its labels mostly from its cluster's part and some
    from the whole vocabulary, few labels often and most rarely; all its items show most of them.
    So neighbors share labels, labels of one scene occur together, clusters differ, and there is a
    long tail of rare labels.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Size; 1,000,000 items with 190,000 labels take some seconds, but see `make_collection`.
    labels_per_sample : float, default=3.0
        About how many labels an item has; fewer if that is a large part of all labels.
    n_clusters : int, default=8
    noise : float, default=0.05
        Share of an item's labels that are drawn at random, wherever it is.
    train_share : float, default=0.75
        Share of the items that are marked for training, at random.
    random_state : int or None, default=0

    Returns
    -------
    Dataset
        X as float32; Y sparse.

    Examples
    --------
    >>> make_local_labels(100, 5, 12)
    Dataset(100 items, 5 features, 12 labels, 2.92 labels per item)
    """
    n = check_integer(n_samples, "n_samples", low=2)
    d = check_integer(n_features, "n_features", low=1)
    q = check_integer(n_labels, "n_labels", low=1)
    n_clusters = check_integer(n_clusters, "n_clusters", low=1)
    mean = check_real(labels_per_sample, "labels_per_sample", low=0, high=q)
    if random_state is not None:
        check_integer(random_state, "random_state", low=0)
    noise = check_real(noise, "noise", low=0, high=1)
    train_share = check_real(train_share, "train_share", low=0, high=1)
    rng = np.random.default_rng(random_state)

    n_scenes = max(n_clusters, n // 25)
    cluster_of = rng.permutation(np.arange(n_scenes) % n_clusters)
    centers = rng.normal(size=(n_clusters, d))
    scenes = centers[cluster_of] + rng.normal(scale=0.5, size=(n_scenes, d))
    part_of = cluster_of % min(n_clusters, q)  # the part of the vocabulary that a scene draws from
    scene_labels = _scene_labels(rng, part_of, q, mean * (1 - noise) / _KEPT)

    X = np.empty((n, d), np.float32)
    Y = []
    for start in range(0, n, 2**16):
        rows = slice(start, min(start + 2**16, n))
        m = rows.stop - rows.start
        scene = rng.integers(n_scenes, size=m)
        X[rows] = scenes[scene] + rng.normal(scale=0.25, size=(m, d))
        shown = scene_labels[scene]
        shown.data = (rng.random(shown.nnz) < _KEPT).astype(np.int8)
        row = np.repeat(np.arange(m), rng.poisson(mean * noise, m))
        Y.append(_ones(shown + label_sets(row, rng.integers(q, size=len(row)), (m, q))))
    train = rng.random(n) < train_share
    whole = sparse.csr_array(sparse.vstack(Y, format="csr"))
    return Dataset(X, whole, numbered_names(q), train=train)


def _scene_labels(rng: np.random.Generator, part_of: Array, q: int, mean: float) -> Csr:
    """Labels per scene, shape (scenes, q): from its part of the vocabulary, a fifth from all."""
    n_scenes = len(part_of)
    vocabulary = rng.permutation(q)
    first = np.linspace(0, q, part_of.max() + 2).astype(np.int64)  # where each part begins
    sizes = rng.poisson(mean, n_scenes)
    scene = np.repeat(np.arange(n_scenes), 4 * sizes)  # some are drawn twice
    part = part_of[scene]
    local = vocabulary[first[part] + _long_tailed(rng, np.diff(first)[part])]
    anywhere = rng.permutation(q)[_long_tailed(rng, np.full(len(scene), q))]
    label = np.where(rng.random(len(scene)) < 0.2, anywhere, local)
    drawn = np.sort(np.unique(scene * q + label, return_index=True)[1])
    scene, label = scene[drawn], label[drawn]
    place = np.arange(len(scene)) - np.searchsorted(scene, scene)
    taken = place < sizes[scene]
    return label_sets(scene[taken], label[taken], (n_scenes, q))


def _long_tailed(rng: np.random.Generator, width: Array) -> Array:
    """Random numbers below `width`, r with frequency about 1 / (r + 1)."""
    drawn = np.exp(rng.random(len(width)) * np.log(width + 1.0)) - 1
    return np.asarray(np.minimum(drawn, width - 1), np.int64)


def numbered_names(q: int) -> Array:
    """Names of q labels, which sort like their numbers."""
    names: Array = np.char.add("label ", np.char.zfill(np.arange(q).astype(str), len(str(q - 1))))
    return names


def label_sets(row: Array, label: Array, shape: tuple[int, int]) -> Csr:
    """A 0/1 matrix from pairs, which may contain duplicates."""
    return _ones(sparse.csr_array((np.ones(len(row), np.int8), (row, label)), shape=shape))


def _ones(matrix: Csr) -> Csr:
    """The matrix with ones in place of its nonzero values."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data = np.ones(matrix.nnz, np.int8)
    return matrix
