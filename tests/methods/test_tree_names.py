"""Trees behind transformers, printed with the names of the features that these return."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

import nearlabel as nl
from nearlabel.features.filled_texts import FilledTexts

RNG = np.random.default_rng(0)
# Cuts halfway between these have few digits, so that no rounding tells one tree from another.
TEMPO, PITCH = 2 * RNG.integers(30, 100, 80), RNG.integers(-30, 10, 80) / 4
FRAME = pd.DataFrame({"tempo": TEMPO, "pitch": PITCH})
NAMES = ["fast", "low"]
Y = np.column_stack([FRAME["tempo"] > 120, FRAME["pitch"] < -4]).astype(int)
TREES = (nl.C45Tree(), nl.ADTBoostMH(3))


def text(*steps, X=FRAME):
    return nl.make_pipeline(*steps).fit(X, Y, label_names=NAMES).tree_text("fast")


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("steps", [(), (SimpleImputer(),), (SimpleImputer(), None)])
def test_features_have_the_names_of_the_data(tree, steps):
    plain = tree.fit(FRAME, Y, label_names=NAMES).tree_text("fast")
    assert plain.splitlines()[0 if tree is TREES[0] else 1].lstrip("| 1:").startswith("tempo <= 1")
    assert text(*steps, tree) == plain


def test_cuts_are_in_the_units_that_transformers_return():
    assert text(MinMaxScaler(), nl.C45Tree()).startswith("tempo <= 0.")


def test_names_of_a_column_transformer():
    words = make_pipeline(FilledTexts(), OneHotEncoder())
    columns = make_column_transformer(("passthrough", ["tempo", "pitch"]), (words, ["key"]))
    frame = FRAME.assign(key=np.where(Y[:, 1], "C", "D"))[["key", "pitch", "tempo"]]
    assert text(columns, nl.C45Tree(), X=frame).startswith("tempo <= 1")
    frame = frame.assign(key=np.where(Y[:, 0], "C", "D"), tempo=0)
    assert text(columns, nl.C45Tree(), X=frame).startswith("key_C <= 0: 0")
    twice = make_column_transformer((SimpleImputer(), ["pitch"]), ("passthrough", ["pitch"]))
    names = text(twice, nl.ADTBoostMH(1), X=FRAME.assign(pitch=FRAME["tempo"]))
    assert "simpleimputer__pitch <= 1" in names


def test_without_names_and_with_those_of_frames():
    assert text(SimpleImputer(), nl.C45Tree(), X=FRAME.to_numpy()).startswith("x0 <= 1")
    framed = SimpleImputer().set_output(transform="pandas")
    assert text(framed, nl.C45Tree()) == text(nl.C45Tree())


@pytest.mark.parametrize("tree", TREES)
def test_a_model_file(tmp_path, tree):
    model = nl.make_pipeline(MinMaxScaler(), tree).fit(FRAME, Y, label_names=NAMES)
    nl.save(model, tmp_path / "m")
    assert nl.load(tmp_path / "m").tree_text("low") == model.tree_text("low")
    scores = model.label_scores(FRAME).toarray()  # printing changes nothing
    np.testing.assert_array_equal(nl.load(tmp_path / "m").label_scores(FRAME).toarray(), scores)


def test_only_trees_are_printed():
    assert not hasattr(nl.make_pipeline(MinMaxScaler(), nl.MLkNN()), "tree_text")
