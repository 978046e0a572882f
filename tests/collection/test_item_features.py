"""Vectors depend only on their own items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_networks import made_network
from scipy import sparse

from nearlabel.collection import item_features as item_features_module
from nearlabel.collection.item_features import chosen_features, item_features
from nearlabel.features import PictureEmbedding
from nearlabel.features.networks import catalog, sessions
from nearlabel.features.networks.stored_networks import NetworkError
from nearlabel.features.picture_files import Skipping

TEXTS = [b"The sea, the sea and a boat", b"a boat at sea", b"\xef\xbb\xbfbread", b""]


def test_words_are_hashed_alone_and_together_alike() -> None:
    chosen = chosen_features("texts")
    made = item_features("texts", chosen)
    rows: Any = made(TEXTS)
    assert sparse.issparse(rows)
    assert rows.shape == (4, chosen["columns"])
    assert rows.dtype == np.float32
    alone = [made([text]) for text in TEXTS]
    assert (sparse.vstack(alone) != rows).nnz == 0
    similar = (rows @ rows.T).toarray()
    # "sea" twice and "boat" once: the others are too frequent.
    twice = 1 + np.log(2)
    assert similar[0, 1] == pytest.approx((twice + 1) / np.sqrt((twice**2 + 1) * 2))
    assert np.diag(similar) == pytest.approx([1, 1, 1, 0])
    assert similar[0, 2] == 0


def test_invalid_texts_are_left_out() -> None:
    given = Skipping([b"a text", b"\xff\xfe", b"\0"])
    rows = item_features("texts", chosen_features("texts", "words"))(given)
    assert rows.shape[0] == 1
    assert [(at, error.reason.split(":")[0]) for at, error in given.skipped] == [
        (1, "is not UTF-8 text"),
        (2, "is not text"),
    ]


def test_the_scale_of_moments_does_not_depend_on_other_pictures() -> None:
    pytest.importorskip("PIL.Image")
    assert chosen_features("pictures", "moments") == {"name": "moments"}
    made = item_features("pictures", {"name": "moments"})
    grey, white = np.full((14, 14, 3), 119, np.uint8), np.full((14, 14, 3), 255, np.uint8)
    half = np.concatenate([white[:7], white[:7] * 0])
    rows: Any = made([grey, white, half])
    assert rows.shape == (3, 294)
    assert rows.dtype == np.float32
    bands = rows.reshape(3, 3, 2, 7, 7)
    assert np.abs(bands[0]).max() < 0.001  # grey is near zero in all features
    assert bands[1, 0, 0] == pytest.approx(0.5, abs=1e-3)
    assert bands[2, 0, 1, :, 0] == pytest.approx([0, 0, 0, 1, 0, 0, 0])  # half black, half white
    assert np.array_equal(made([half])[0], rows[2])


def test_a_picture_that_cannot_be_read_is_left_out() -> None:
    pytest.importorskip("PIL.Image")
    given = Skipping([b"no picture", np.zeros((8, 8, 3), np.uint8)])
    assert item_features("pictures", {"name": "moments"})(given).shape == (1, 294)
    assert [at for at, _ in given.skipped] == [0]


def test_vectors_are_given() -> None:
    assert chosen_features("vectors") == {"name": "given"}
    with pytest.raises(ValueError, match="vectors are given"):
        item_features("vectors", {"name": "given"})


@pytest.mark.parametrize(
    ("kind", "name"), [("pictures", "minilm"), ("texts", "moments"), ("vectors", "words")]
)
def test_features_of_another_kind_are_refused(kind: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"features of {kind} must be one of.*got '{name}'"):
        chosen_features(kind, name)


@pytest.mark.parametrize(
    ("kind", "features"),
    [
        ("pictures", {}),
        ("pictures", {"name": "efficientnet-lite0"}),
        ("pictures", {"name": "x", "sha256": 3, "width": 1, "input": {}}),
        ("texts", {"name": "words"}),
        ("texts", {"name": "words", "columns": 2**40}),
        ("texts", {"name": "minilm", "more": 1}),
    ],
)
def test_invalid_settings_are_refused(kind: str, features: Any) -> None:
    with pytest.raises(ValueError, match="are not valid|columns|must be strings"):
        item_features(kind, features)


def test_a_network_is_kept_with_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    network = made_network(tmp_path)
    known = {network.name: network}
    for module in (catalog, item_features_module):
        monkeypatch.setattr(module, "NETWORKS", known)
    monkeypatch.setattr(sessions, "_open", {})
    network.get(tmp_path)
    chosen = chosen_features("pictures")
    assert (chosen["name"], chosen["sha256"]) == (network.name, network.sha256)
    assert chosen == json.loads(json.dumps(chosen)) == chosen_features("pictures", chosen)
    picture = np.zeros((20, 20, 3), np.uint8)
    row = item_features("pictures", chosen)([picture])
    assert np.array_equal(row, PictureEmbedding().fit_transform([picture]))
    with pytest.raises(NetworkError, match=network.name):
        item_features("pictures", {**chosen, "sha256": "0" * 64})([picture])
