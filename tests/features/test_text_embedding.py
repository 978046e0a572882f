import json
import pickle

import numpy as np
import pytest
from made_text_network import text_network
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

import nearlabel as nl
from nearlabel.features import TextEmbedding
from nearlabel.features.networks.catalog import NETWORKS

pytest.importorskip("onnxruntime")
PIECES = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "sea", "sky", "##s", "night"]
TABLE = np.random.default_rng(0).normal(size=(len(PIECES), 6)).astype(np.float32)
TOKENIZER = {
    "added_tokens": [],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                   "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {piece: number for number, piece in enumerate(PIECES)}},
}  # fmt: skip
TEXTS = ["Seas", "the night", "", "sky sea", "sea " * 300]


@pytest.fixture
def network(tmp_path):
    """The path of a small user network, with its tokenizer next to it."""
    path = tmp_path / "own.onnx"
    path.write_bytes(text_network(TABLE))
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return path


def test_the_mean_over_pieces_of_length_1(network):
    made = TextEmbedding(network).fit_transform(TEXTS)
    for row, pieces in zip(made, [[1, 4, 6, 2], [1, 3, 7, 2], [1, 2], [1, 5, 4, 2]], strict=False):
        mean = TABLE[pieces].mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-6)
    long = TABLE[[1, *[4] * 126, 2]].mean(axis=0)
    np.testing.assert_allclose(made[4], long / np.linalg.norm(long), atol=1e-6)
    assert made.dtype == np.float32


def test_threads_and_neighbors_change_nothing(network):
    embedding = TextEmbedding(network).fit(None)
    made = embedding.transform(TEXTS)
    np.testing.assert_array_equal(TextEmbedding(network, n_jobs=2).transform(TEXTS), made)
    for row, text in zip(made, TEXTS, strict=True):
        np.testing.assert_array_equal(embedding.transform([text])[0], row)
    assert embedding.transform([]).shape == (0, 6)


def test_fewer_pieces(network):
    short = TextEmbedding(network, max_tokens=3).fit_transform(["sky sea night"])
    np.testing.assert_array_equal(short, TextEmbedding(network).fit_transform(["sky"]))


def test_scikit_learns_contract(network):
    embedding = clone(TextEmbedding(network, max_tokens=9))
    assert embedding.get_params() == {"network": network, "max_tokens": 9, "n_jobs": None}
    assert embedding.get_feature_names_out().tolist() == [f"textembedding{at}" for at in range(6)]
    made = embedding.fit_transform(TEXTS)
    again = pickle.loads(pickle.dumps(embedding))
    np.testing.assert_array_equal(again.transform(iter(TEXTS)), made)
    frame = embedding.set_output(transform="pandas").transform(TEXTS)
    np.testing.assert_array_equal(frame.to_numpy(), made)


def test_in_model_files_beside_tf_idf(network, tmp_path):
    both = FeatureUnion([("meaning", TextEmbedding(network)), ("words", TfidfVectorizer())])
    model = nl.make_pipeline(both, nl.MLkNN(2)).fit(TEXTS, [["a"], ["b"], [], ["a"], ["a"]])
    nl.save(model, tmp_path / "texts.model")
    loaded = nl.load(tmp_path / "texts.model")
    new = ["sea night", "sky"]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    used = loaded[0].transformer_list[0][1].network_
    assert used == model[0].transformer_list[0][1].network_
    assert used.width == 6


@pytest.mark.parametrize("part", ["own.onnx", "tokenizer.json"])
def test_a_stored_model_refuses_another_network(network, tmp_path, part):
    embedding = TextEmbedding(network).fit(None)
    nl.save(nl.make_pipeline(embedding, nl.MLkNN(1)).fit(TEXTS, [["a"]] * 5), tmp_path / "m")
    other = (tmp_path / part).read_bytes()
    other = text_network(TABLE + 1) if part == "own.onnx" else other.replace(b"night", b"nicht")
    (tmp_path / part).write_bytes(other)
    from nearlabel.features import text_embedding
    from nearlabel.features.networks import sessions

    sessions._open.clear()  # as in a new process
    text_embedding._pieces.cache_clear()
    with pytest.raises(ValueError, match="is not the network.*sha256"):
        nl.load(tmp_path / "m").predict(["sea"])


def test_a_function(tmp_path):
    def lengths(texts):
        return [[len(text), 1] for text in texts]

    embedding = TextEmbedding(lengths).fit(None)
    assert embedding.transform(["ab", ""]).tolist() == [[2, 1], [0, 1]]
    assert embedding.network_.name.endswith("lengths")
    with pytest.raises(TypeError, match="function"):
        nl.save(
            nl.make_pipeline(embedding, nl.MLkNN(1)).fit(["a", "b"], [["x"], []]), tmp_path / "m"
        )
    with pytest.raises(ValueError, match=r"for each of 1 texts.*\(2, 1\)"):
        TextEmbedding(lambda _: [[1], [2]]).fit(None)
    embedding.set_params(network=lambda texts: [[1]] * len(texts))
    with pytest.raises(ValueError, match="1 values per text; expected 2"):
        embedding.transform(["a"])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"network": "minilmm"}, ["network", "'minilmm'", "'minilm'"]),
        ({"network": "pplcnetv2"}, ["network", "'pplcnetv2'", "'minilm'"]),
        ({"network": 3}, ["network", "3"]),
        ({"network": "none.onnx"}, ["none.onnx", "no such file"]),
        ({"max_tokens": 2}, ["max_tokens", "2"]),
        ({"max_tokens": 513}, ["max_tokens", "513"]),
        ({"n_jobs": 0}, ["n_jobs", "0"]),
    ],
)
def test_invalid_parameters(parameters, words):
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as error:
        TextEmbedding(**parameters).fit(None)
    assert all(word in str(error.value) for word in words)


def test_networks_with_different_inputs_or_outputs(network):
    network.write_bytes(text_network(TABLE, inputs=("pixels",)))
    with pytest.raises(ValueError, match="own.onnx must take input_ids.*pixels"):
        TextEmbedding(network).fit(None)
    network.write_bytes(b"no network")
    with pytest.raises(ValueError, match="own.onnx"):
        TextEmbedding(network).fit(None)
    network.write_bytes(text_network(TABLE * 2))
    network.with_name("tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="tokenizer.json"):
        TextEmbedding(network).fit(None)


def test_inputs_that_are_not_texts(network):
    embedding = TextEmbedding(network).fit(None)
    for X in ("a text", ["a text", 5], None):
        with pytest.raises(TypeError, match="X must"):
            embedding.transform(X)


@pytest.mark.skipif(not NETWORKS["minilm"].is_stored, reason="nearlabel models get minilm")
def test_minilm():
    texts = ["A ship sails on the ocean.", "boats at sea", "the stock market fell", "Börse"]
    made = TextEmbedding().fit_transform(texts)
    assert made.shape == (4, 384)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    likeness = made @ made.T
    assert likeness[0, 1] > 0.5 > 0.2 > likeness[0, 2]
    np.testing.assert_array_equal(TextEmbedding(n_jobs=2).fit_transform(texts), made)
