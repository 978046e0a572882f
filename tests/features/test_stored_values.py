"""Values of stored transformers that no file may contain."""

import numpy as np
import pytest

from nearlabel.features import FrequentWords, GridMoments, PictureEmbedding, TextEmbedding

USED = {"name": "minilm", "width": 384, "sha256": "0", "tokenizer_sha256": "1"}
INPUT = {"size": 8, "mean": 0, "std": 1}
SEEN = {"name": "pplcnetv2", "width": 5, "sha256": "0", "input": INPUT}
TREES = {
    FrequentWords: {
        "share": 0.5,
        "stop_words": None,
        "words": ["a", "b"],
        "document_frequency": np.array([1, 2]),
    },
    GridMoments: GridMoments()._tree(),
    TextEmbedding: {"network": "minilm", "max_tokens": 128, "n_jobs": None, "used": USED},
    PictureEmbedding: {"network": "auto", "batch_size": 1, "n_jobs": None, "used": SEEN},
}
WRONG = [
    (FrequentWords, {"share": 0}),
    (FrequentWords, {"share": "all"}),
    (FrequentWords, {"stop_words": "german"}),
    (FrequentWords, {"words": []}),
    (FrequentWords, {"words": ["b", "a"]}),
    (FrequentWords, {"words": ["a", "a"]}),
    (FrequentWords, {"words": "ab"}),
    (FrequentWords, {"document_frequency": np.array([1])}),
    (FrequentWords, {"document_frequency": np.array([1.0, 2.0])}),
    (GridMoments, {"grid": -1}),
    (GridMoments, {"grid": 257}),
    (GridMoments, {"grid": "7"}),
    (GridMoments, {"spread": None}),
    (GridMoments, {"max_pixels": 0.5}),
    (GridMoments, {"n_jobs": "x"}),
    (TextEmbedding, {"max_tokens": 0}),
    (TextEmbedding, {"n_jobs": "two"}),
    (TextEmbedding, {"network": 5}),
    (TextEmbedding, {"used": {"name": "minilm"}}),
    (TextEmbedding, {"used": 3}),
    (TextEmbedding, {"used": {**USED, "name": "pplcnetv2"}}),
    (PictureEmbedding, {"network": 5}),
    (PictureEmbedding, {"batch_size": 0}),
    (PictureEmbedding, {"n_jobs": 0.5}),
    (PictureEmbedding, {"used": None}),
    (PictureEmbedding, {"used": {**SEEN, "width": -1}}),
    (PictureEmbedding, {"used": {**SEEN, "sha256": None}}),
    (PictureEmbedding, {"used": {**SEEN, "name": "minilm"}}),  # for texts
    (PictureEmbedding, {"used": {**SEEN, "input": {**INPUT, "std": 0}}}),
    (PictureEmbedding, {"used": {**SEEN, "input": {"size": 8, "std": 1}}}),
]


@pytest.mark.parametrize(
    ("kind", "change"), WRONG, ids=[f"{kind.__name__}-{change}" for kind, change in WRONG]
)
def test_wrong_values_are_refused(kind, change):
    assert kind._from_tree(TREES[kind], 3).get_params()
    with pytest.raises((TypeError, ValueError, KeyError)):
        kind._from_tree({**TREES[kind], **change}, 3)
