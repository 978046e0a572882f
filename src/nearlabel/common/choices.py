"""The strings that parameters accept, available without loading what they select.

The command line shows them in its help, which imports neither NumPy nor SciPy.
"""

from __future__ import annotations

CONVENTIONS = ("paper", "lamda", "mulan", "sklearn")
DISTANCES = ("euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard")
FORMATS = ("npz", "arff", "csv", "tsv", "jsonl", "json", "parquet", "sparse")
IMPUTES = ("none", "mean", "median", "zero")
NOMINALS = ("onehot", "code")
SCALES = ("none", "minmax", "standard", "rank", "tfidf", "auto")
SEARCHES = ("auto", "exact", "approximate")
