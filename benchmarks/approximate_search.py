"""How fast is the approximate graph of hard data, compared with faiss at the same recall?

Usage: python approximate_search.py [--rows N]
"""

from __future__ import annotations

import argparse

import numpy as np
from measuring import report, use_memory
from tuned_search import compared, faiss_graphs, faiss_lists, ours, ours_exactly, sample, theirs

import nearlabel as nl

QUESTION = (
    "The graph of overlapping clusters at a recall of 0.98, 128 features, 100 neighbors: "
    "core-seconds on one thread, including training and building. faiss is tuned on 1,000 rows: "
    "for each index, the cheapest setting that reaches the recall on them, with 2, 4 and 8 times "
    "the square root of twice the rows as lists, and graphs of 16 and 32 links. Its time for all "
    "rows is extrapolated from 10,000 random ones"
)
TIMED = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="use fewer to try the script")
    n = parser.parse_args().rows
    use_memory()
    X = np.asarray(nl.datasets.make_collection(n, 128, 1_000, overlap=4.0, n_queries=1).data.X)
    some = sample(X)
    rows = [ours(X, some), ours_exactly(X)]
    rows += [theirs(X, some, one, TIMED) for kind in (faiss_lists, faiss_graphs) for one in kind(n)]
    report(QUESTION, compared(n, rows), peers=("faiss-cpu",))


if __name__ == "__main__":
    main()
