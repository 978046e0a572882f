"""A large synthetic collection with a long-tailed vocabulary and incomplete label lists.

Items are in a tree of places: scenes of about 32 items, regions of 32 scenes, domains of 32
regions, and the whole. Places determine the vectors of items and the reach of labels, so that
neighbors share frequent labels by being in the same domain, and rare ones in the same scene.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from nearlabel.common.arrays import Array, Csr, csr_of_known
from nearlabel.common.files import replacing
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.generators import label_sets, numbered_names

# Vectors are products of multiples of these two steps. As integers below 2**53 their sums are exact
# in any order, so that neither the BLAS nor the size of the blocks changes the result.
_SHARED_STEP, _ROTATION_STEP = 2.0**-21, 2.0**-23
_ROWS_AT_ONCE = 2**14
_MOST_ITEMS = 10**9  # or labels: their numbers are int32


@dataclass(frozen=True, eq=False)
class MadeCollection:
    """Items with incomplete lists of labels, new items as queries, and all true labels.

    Attributes
    ----------
    data : Dataset
        The items; Y has the labels in their lists. ``extra`` has the place of each item, its
        ``scene`` and its ``region``, by number.
    complete : csr_array of int8, shape (n, q)
        All labels that are true of the items.
    queries : Dataset
        New items from the same places, in the same form.
    queries_complete : csr_array of int8, shape (m, q)
        All labels that are true of the new items.
    """

    data: Dataset
    complete: Csr
    queries: Dataset
    queries_complete: Csr

    def __repr__(self) -> str:
        return f"Collection({self.data!r}, {len(self.queries)} queries)"


def make_collection(
    n_samples: int = 1_000_000,
    n_features: int = 128,
    n_labels: int = 190_000,
    *,
    labels_per_sample: float = 8.0,
    completeness: float = 0.7,
    n_queries: int | None = None,
    overlap: float = 0.5,
    dtype: str = "float32",
    out: str | os.PathLike[str] | None = None,
    random_state: int | None = 0,
) -> MadeCollection:
    """Make a collection like that of the 2017 paper: by default a million items, 190,000 labels.

    Items are in scenes of some 32 items, of very different popularity; 32 scenes form a region, 32
    regions a domain. The vectors of each region vary in a few directions of their own. The
    vocabulary follows Zipf's law. A label belongs to the smallest kind of place that is large
    enough for its frequency: a few to the whole collection, more to a domain or a region, and most,
    the rare ones, to a scene. Every fourth is scattered over the next larger place instead. Within
    its place a label is assigned at random, and each list has only a part of the true labels.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Size. With fewer items there are fewer places, and the rarest labels may not occur.
    labels_per_sample : float, default=8.0
        About how many labels an item's list has; fewer if that is a large part of all labels.
    completeness : float, default=0.7
        Share of an item's true labels that are in its list, at random.
    n_queries : int, optional
        New items, besides `n_samples`; by default one per hundred items.
    overlap : float, default=0.5
        Typical distance within a region, relative to that between the centers of two regions of the
        same domain. With 0.5 a neighborhood seldom leaves its region; with 4 regions overlap.
    dtype : {"float32", "float16"}, default="float32"
        Of the vectors.
    out : path, optional
        A ``.npy`` file to which the vectors of the items are written, block by block; X is then a
        read-only memory map of it. The file is complete or does not exist.
    random_state : int or None, default=0

    Returns
    -------
    Collection

    See Also
    --------
    make_local_labels : smaller data sets with two levels of places.

    Examples
    --------
    >>> make_collection(2000, 16, 400)
    Collection(Dataset(2000 items, 16 features, 400 labels, 7.98 labels per item), 20 queries)
    """
    n = check_integer(n_samples, "n_samples", low=2, high=_MOST_ITEMS)
    d = check_integer(n_features, "n_features", low=1)
    q = check_integer(n_labels, "n_labels", low=1, high=_MOST_ITEMS)
    mean = check_real(labels_per_sample, "labels_per_sample", low=0, high=q)
    completeness = check_real(completeness, "completeness", low=0.01, high=1)
    if n_queries is None:
        n_queries = n // 100
    new = check_integer(n_queries, "n_queries", low=0, high=_MOST_ITEMS)
    overlap = check_real(overlap, "overlap", low=0.01, high=100)
    kind = np.dtype(check_choice(dtype, "dtype", ("float32", "float16")))
    if out is not None and Path(out).suffix != ".npy":
        raise ValueError(f"out must be the path of a .npy file; got {os.fspath(out)!r}")
    if random_state is not None:
        check_integer(random_state, "random_state", low=0)
    tree, labels, lists, vectors = np.random.default_rng(random_state).spawn(4)

    places = _grown_places(tree, n + new)
    row = tree.permutation(n + new)  # of each item in the order of the tree
    scene = np.empty(n + new, np.int32)
    scene[row] = places.scene
    item, label = _carried(labels, places, q, mean / completeness)
    complete = label_sets(row[item].astype(np.int32), label, (n + new, q))
    del item, label  # a few hundred MB of a large collection
    shown = _shown(lists, complete, completeness)
    names, region = numbered_names(q), places.region[scene]
    geometry = _laid_out(vectors, places, d, overlap)
    streams = vectors.spawn(2)

    def part(rows: slice, path: str | os.PathLike[str] | None) -> Dataset:
        blocks = _vectors(geometry, streams, scene[rows], kind)
        X = _collected(blocks, (rows.stop - rows.start, d), kind, path)
        extra = {"scene": scene[rows], "region": region[rows]}
        return Dataset(X, shown[rows], names, extra=extra)

    items, new_items = slice(0, n), slice(n, n + new)
    data, queries = part(items, out), part(new_items, None)
    return MadeCollection(data, complete[items], queries, complete[new_items])


class _Places(NamedTuple):
    """The tree of places; items are numbered in its order, so that each place is a run of items."""

    scene: Array  # of each item
    region: Array  # of each scene
    domain: Array  # of each region
    begin: tuple[Array, ...]  # where the items of each place begin, and the last end, by level


def _grown_places(rng: np.random.Generator, n: int) -> _Places:
    """Places of n items: scenes of about 32 items, regions of 32 scenes, domains of 32 regions."""
    scenes = -(-n // 32)
    regions = -(-scenes // 32)
    domains = -(-regions // 32)
    region = np.arange(scenes) * regions // scenes
    domain = np.arange(regions) * domains // regions
    popularity = np.exp(rng.normal(size=scenes))
    sizes = rng.multinomial(n, popularity / popularity.sum())
    ends = np.concatenate([[0], np.cumsum(sizes)])
    of_regions = ends[np.searchsorted(region, np.arange(regions + 1))]
    of_domains = of_regions[np.searchsorted(domain, np.arange(domains + 1))]
    begin = (np.array([0, n]), of_domains, of_regions, ends)
    return _Places(np.repeat(np.arange(scenes), sizes), region, domain, begin)


def _carried(rng: np.random.Generator, places: _Places, q: int, mean: float) -> tuple[Array, Array]:
    """Pairs of an item and one of its true labels, some of them twice.

    By the Zipf-Mandelbrot law the label of rank r has frequency ~ 1 / (r + 2.7). A place is large
    enough for a label that at most half of its items have; with a chance of a quarter the label is
    scattered over the next larger place instead, and so on.
    """
    n = len(places.scene)
    use = 1 / (np.arange(1, q + 1) + 2.7)
    use *= mean * n / use.sum()  # about how many items will have the label of each rank
    count = np.array([len(begin) - 1 for begin in places.begin])  # places of each level
    size = n / count
    level = np.sum(0.5 * size[:, None] >= use, axis=0) - 1
    level = np.maximum(level - (rng.geometric(0.75, q) - 1), 0)
    place = (rng.random(q) * count[level]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(count)])[level] + place
    begin = np.concatenate([begin[:-1] for begin in places.begin])[first]
    width = np.concatenate([np.diff(begin) for begin in places.begin])[first]
    chance = np.minimum(use / size[level], 0.9)  # however few labels there are
    # With this number of draws, an item is hit at least once with exactly this probability.
    draws = rng.poisson(-width * np.log1p(-chance))
    label = np.repeat(rng.permutation(q).astype(np.int32), draws)
    item = rng.random(len(label))
    item *= np.repeat(width, draws)
    item += np.repeat(begin, draws)
    return item.astype(np.int32), label


def _shown(rng: np.random.Generator, complete: Csr, share: float) -> Csr:
    """A random part of the labels."""
    is_shown = rng.random(complete.nnz) < share
    ends = np.concatenate([[0], np.cumsum(is_shown)])[complete.indptr]
    indices = complete.indices[is_shown]
    return csr_of_known(np.ones(len(indices), np.int8), indices, ends, complete.shape)


class _Geometry(NamedTuple):
    """The positions of places, as float32 unless a comment says otherwise."""

    centers: Array  # of regions, shape (regions, shared)
    directions: Array  # int: dimensions in which a region's items differ, shape (regions, own)
    offsets: Array  # of scenes from the centers of their regions, shape (scenes, own)
    spread: Array  # standard deviation of the items of a scene, shape (scenes, 1)
    rotation: Array  # float64: multiples of _ROTATION_STEP, orthonormal, shape (shared, d)
    region: Array  # int: of each scene


def _laid_out(rng: np.random.Generator, places: _Places, d: int, overlap: float) -> _Geometry:
    """Places laid out at random; typical distances between items within a region are about 1.

    Some scenes are near copies, others are loose.
    """
    shared = min(64, d)  # dimensions that all places share
    own = min(16, shared)  # those of them that a region uses
    scenes, regions, domains = len(places.region), len(places.domain), places.domain[-1] + 1
    centers = _scattered(rng, (domains, shared), 1 / overlap)[places.domain]
    centers += _scattered(rng, (regions, shared), 1 / overlap)
    directions = rng.random((regions, shared)).argsort(axis=1)[:, :own]
    offsets = _scattered(rng, (scenes, own), 0.8)
    spread = rng.uniform(0.2, 0.8, (scenes, 1)) / np.sqrt(2 * own)
    rotation = np.linalg.qr(rng.normal(size=(d, shared)))[0].T
    rotation = np.rint(rotation / _ROTATION_STEP)
    centers, offsets, spread = (part.astype(np.float32) for part in (centers, offsets, spread))
    return _Geometry(centers, directions, offsets, spread, rotation, places.region)


def _vectors(
    geometry: _Geometry, streams: list[np.random.Generator], scene: Array, dtype: npt.DTypeLike
) -> Iterator[Array]:
    """Vectors of items in the given scenes, block by block.

    The variation within scenes and the noise have separate random streams, so that the size of the
    blocks does not matter.
    """
    within, noise = streams
    own, d = geometry.offsets.shape[1], geometry.rotation.shape[1]
    for first in range(0, len(scene), _ROWS_AT_ONCE):
        here = scene[first : first + _ROWS_AT_ONCE]
        rows, region = np.arange(len(here))[:, None], geometry.region[here]
        step = within.standard_normal((len(here), own), np.float32) * geometry.spread[here]
        shared = geometry.centers[region]
        shared[rows, geometry.directions[region]] += geometry.offsets[here] + step
        X = noise.standard_normal((len(here), d), np.float32)
        X *= np.float32(0.15 / np.sqrt(2 * d))
        product = np.rint(shared / _SHARED_STEP) @ geometry.rotation
        X += product * (_SHARED_STEP * _ROTATION_STEP)
        yield X.astype(dtype, copy=False)


def _scattered(rng: np.random.Generator, shape: tuple[int, int], distance: float) -> Array:
    """Random points at about this distance from each other."""
    points: Array = rng.normal(scale=distance / np.sqrt(2 * shape[1]), size=shape)
    return points


def _collected(
    blocks: Iterator[Array],
    shape: tuple[int, int],
    dtype: np.dtype[np.floating],
    path: str | os.PathLike[str] | None,
) -> Array:
    """All blocks as one array: in memory, or in a memory-mapped file."""
    if path is None:
        X, start = np.empty(shape, dtype), 0
        for block in blocks:
            X[start : start + len(block)] = block
            start += len(block)
        return X
    with replacing(path) as file:
        header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(block.data)
    mapped: Array = np.load(path, mmap_mode="r")
    return mapped
