"""How fast is the approximate graph of hard clusters, compared with other libraries?

Usage: python hard_clusters.py [--rows N] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from measuring import report, use_memory
from tuned_search import (
    Index,
    K,
    Row,
    Sample,
    compared,
    faiss_graphs,
    faiss_lists,
    made_by_faiss,
    ours,
    ours_exactly,
    sample,
    steps,
    theirs,
)

QUESTION = (
    "The graph of hard clusters at a recall of 0.98, 128 features, 100 neighbors: core-seconds on "
    "one thread, including training and building. The noise of a row in 64 dimensions is as wide "
    "as the spread of the centers of the clusters, each of about 700 rows. Each index is tuned on "
    "1,000 rows to the cheapest setting that reaches the recall on them; its time for all rows is "
    "extrapolated from 4,000 random ones. Settings: leaves and reordered candidates of ScaNN, "
    "candidates of graphs, probes of lists, probes and the factor of refined candidates of fast "
    "scan. pynndescent computes the graph of the rows as it builds its index"
)
D, PART, SIZE, TIMED = 128, 64, 700, 4_000
CANDIDATES = (2, 2.5, 3, 4)  # per neighbor, for which exact distances are computed


def hard_clusters(n: int, n_queries: int = 0) -> tuple[Any, Any]:
    """Rows in clusters whose noise is as wide as the spread of their centers, and new rows.

    The n // 700 centers are standard normal in 64 dimensions. A row is a random center plus
    standard normal noise in the same dimensions, mapped to 128 features by a standard normal
    matrix. The matrix is not orthogonal: it stretches some directions up to six times as much
    as others, so that our lists take nearly twice as long as with one that has orthonormal rows.

    Parameters
    ----------
    n : int
        Number of rows.
    n_queries : int, default=0
        Number of new rows, drawn like the others.

    Returns
    -------
    X, queries : ndarray of float32, 128 columns
        In random order; the same for the same numbers, up to rounding.
    """
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((max(1, n // SIZE), PART), dtype=np.float32)
    features = rng.standard_normal((PART, D), dtype=np.float32)

    def rows(count: int) -> Any:
        noise = rng.standard_normal((count, PART), dtype=np.float32)
        return (centers[rng.integers(len(centers), size=count)] + noise) @ features

    return rows(n), rows(n_queries)


def with_scann(n: int) -> Iterator[Index]:
    """Trees with asymmetric hashing and reordering."""
    import scann

    def build(leaves: int, X: Any) -> Any:
        made = scann.scann_ops_pybind.builder(X, K + 1, "squared_l2").set_n_training_threads(1)
        tree = made.tree(leaves, leaves, training_sample_size=min(len(X), 100_000))
        return tree.score_ah(2).reorder(3 * K).build()

    def search(made: Any, X: Any, rows: Any, setting: tuple[int, int]) -> Any:
        leaves, candidates = setting
        found = made.search_batched(
            X[rows], leaves_to_search=leaves, pre_reorder_num_neighbors=candidates
        )
        return found[0].astype(np.int64)

    for factor in (0.5, 1, 2):
        count = int(factor * np.sqrt(n))
        settings = [[(leaves, int(more * K)) for leaves in steps(4, count)] for more in CANDIDATES]
        yield Index(f"ScaNN, {count} leaves", partial(build, count), search, settings)


def with_hnswlib(n: int) -> Iterator[Index]:  # noqa: ARG001
    """Graphs of hnswlib."""
    import hnswlib

    def build(links: int, X: Any) -> Any:
        made = hnswlib.Index("l2", X.shape[1])
        made.init_index(len(X), M=links, ef_construction=80, random_seed=0)
        made.add_items(X, num_threads=1)
        return made

    def search(made: Any, X: Any, rows: Any, candidates: int) -> Any:
        made.set_ef(candidates)
        return made.knn_query(X[rows], K + 1, num_threads=1)[0].astype(np.int64)

    for links in (16, 24):
        yield Index(f"hnswlib M{links}", partial(build, links), search, [steps(K + 1, 4_000)])


def faiss_fast_scan(n: int) -> Iterator[Index]:
    """Inverted lists of codes of 4 bits, refined by the rows."""

    def search(made: Any, X: Any, rows: Any, setting: tuple[int, float]) -> Any:
        import faiss

        probes, made.k_factor = setting
        faiss.extract_index_ivf(made.base_index).nprobe = probes
        return made.search(X[rows], K + 1)[1]

    for factor in (0.5, 1, 2):
        count = int(factor * np.sqrt(n))
        name = f"IVF{count},PQ64x4fs,RFlat"
        settings = [[(probes, more) for probes in steps(4, count)] for more in CANDIDATES]
        yield Index(f"faiss {name}", partial(made_by_faiss, name), search, settings)


def with_pynndescent(n: int) -> Iterator[Index]:  # noqa: ARG001
    """Graphs of pynndescent, compiled before they are measured."""
    import pynndescent

    def build(candidates: int, X: Any) -> Any:
        made = pynndescent.NNDescent(
            X, n_neighbors=K + 1, max_candidates=candidates, random_state=0, n_jobs=1
        )
        return made.neighbor_graph[0]

    def search(made: Any, X: Any, rows: Any, candidates: int) -> Any:  # noqa: ARG001
        return made[rows]

    build(20, np.random.default_rng(0).standard_normal((5_000, D), dtype=np.float32))
    for candidates in (20, 60):
        yield Index("pynndescent", partial(build, candidates), search, [[candidates]])


def with_svs(n: int) -> Iterator[Index]:  # noqa: ARG001
    """Graphs of Scalable Vector Search."""
    import svs

    def build(links: int, X: Any) -> Any:
        parameters = svs.VamanaBuildParameters(
            alpha=1.2, graph_max_degree=links, window_size=2 * links
        )
        return svs.Vamana.build(parameters, X, svs.DistanceType.L2, num_threads=1)

    def search(made: Any, X: Any, rows: Any, candidates: int) -> Any:
        made.search_window_size = candidates
        return made.search(X[rows], K + 1)[0].astype(np.int64)

    for links in (32, 64):
        yield Index(f"SVS Vamana R{links}", partial(build, links), search, [steps(K + 1, 4_000)])


PEERS: dict[str, Callable[[int], Iterator[Index]]] = {
    "scann": with_scann,
    "hnswlib": with_hnswlib,
    "faiss-fast-scan": faiss_fast_scan,
    "pynndescent": with_pynndescent,
    "svs": with_svs,
    "faiss-graphs": faiss_graphs,
    "faiss-lists": partial(faiss_lists, factors=(0.5, 1, 2)),
}


def tried(name: str, X: Any, some: Sample) -> list[Row]:
    """The rows of a library, or the reason why there are none."""
    rows = []
    try:
        for index in PEERS[name](len(X)):
            try:
                rows.append(theirs(X, some, index, TIMED))
            except Exception as error:
                rows.append({"search": index.name, "reason": str(error)})
    except Exception as error:  # it is not installed, or cannot be loaded
        rows.append({"search": name, "reason": str(error)})
    for row in rows:
        if "reason" in row:
            print(row, file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="use fewer to try the script")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=("exact", *PEERS),
        metavar="NAME",
        help=f"compare our lists with these searches: exact, {', '.join(PEERS)}",
    )
    arguments = parser.parse_args()
    use_memory()
    X, _ = hard_clusters(arguments.rows)
    some = sample(X)
    rows = [ours(X, some)]
    for name in arguments.only or ("exact", *PEERS):
        rows += [ours_exactly(X)] if name == "exact" else tried(name, X, some)
    peers = ("scann", "hnswlib", "faiss-cpu", "pynndescent", "scalable-vs")
    report(QUESTION, compared(arguments.rows, rows), peers=peers)


if __name__ == "__main__":
    main()
