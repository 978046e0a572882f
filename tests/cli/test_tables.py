"""Tables with numbers, categories, texts and gaps, from a file to a ranking."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.metrics import evaluate

WORDS = {"calm": "sea sky soft", "happy": "sun dance light", "sad": "rain tears cold"}
PREPARED = ("--text", "title", "body", "--impute", "median")


def rows(count, seed):
    """Songs with tags that depend on text, tempo and key; some cells are missing."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        tags = [tag for tag in WORDS if rng.random() < 0.4] or ["calm"]
        words = " ".join(WORDS[tag] for tag in tags).split()
        tempo = f"{rng.normal(100 + 40 * ('happy' in tags), 10):.1f}"
        yield {
            "id": f"song {number}",
            "tempo": "" if number % 9 == 4 else tempo,
            "loudness": "NA" if number % 11 == 5 else f"{rng.normal():.3f}",
            "key": ""
            if number % 7 == 0
            else "77"
            if "sad" in tags
            else str(rng.choice(["C", "D"])),
            "title": "1984" if number == 0 else " ".join(rng.choice(words, 2)),
            "body": "" if number % 8 == 3 else " ".join(rng.choice(words, 4)),
            "tags": ";".join(tags),
        }


def write(path, table):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "songs.csv", list(rows(60, 0)))
    new = [{name: cell for name, cell in row.items() if name != "tags"} for row in rows(9, 1)]
    write(tmp_path / "new.csv", new)
    return tmp_path


@pytest.fixture
def frame(folder):
    """The new items as pandas reads them."""
    return pd.read_csv("new.csv")


def each(ranked, key):
    """The labels of all items, or their scores."""
    return [[label[key] for label in one["labels"]] for one in ranked]


def test_two_commands_and_the_same_in_python(folder, ask, frame):
    printed = ask("fit", "songs.csv", *PREPARED, "-o", "songs.model")
    assert "features: tempo, loudness, key (3 values), title (text), " in " ".join(printed.split())
    ranked = json.loads(ask("rank", "songs.model", "new.csv", "--top", 3, "--json"))
    assert [one["id"] for one in ranked] == [f"song {number}" for number in range(9)]
    model = nl.load("songs.model")
    assert model.feature_names_in_.tolist() == ["tempo", "loudness", "key", "title", "body"]
    how = {"text": ["title", "body"], "categories": ["key"], "gaps": True}
    raw = nl.datasets.load("new.csv", labels=(), **how).X
    assert raw["title"][0] == "1984"
    assert (raw["key"][0], raw["key"].dtype) == (None, pl.String)
    assert raw["tempo"].is_nan().sum() == 1
    turned = frame[[*reversed(frame.columns)]]
    assert frame["body"].isna().any()
    objects = frame.astype({"key": object, "body": object}).replace({np.nan: None})
    objects = objects.astype({"tempo": float, "loudness": float})
    for asked in (raw, frame, objects, frame.convert_dtypes(), turned, raw[:, ::-1]):
        best = model.rank(asked, 3)
        assert best.names.tolist() == [
            [label["label"] for label in one["labels"]] for one in ranked
        ]
        assert best.scores.tolist() == [
            [label["score"] for label in one["labels"]] for one in ranked
        ]
    assert ask("rank", "songs.model", "new.csv", "--why").count("10 neighbors") >= 9
    assert ask("predict", "songs.model", "new.csv").count("song ") == 9


def test_categories_that_pandas_takes_for_numbers(folder, ask):
    ask("fit", "songs.csv", *PREPARED, "-o", "m")
    write(folder / "seven.csv", [{**row, "key": "77"} for row in rows(5, 4)])
    ranked = json.loads(ask("rank", "m", "seven.csv", "--json"))
    frame = pd.read_csv("seven.csv")
    assert frame["key"].dtype.kind == "i"
    for key in (frame["key"], frame["key"].astype(float)):
        assert nl.load("m").rank(frame.assign(key=key)).scores.tolist() == each(ranked, "score")


def by_hand():
    """The preprocessing written out with scikit-learn only."""
    return ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [0, 1]),
            ("w", OneHotEncoder(handle_unknown="ignore"), [2]),
            ("t", TfidfVectorizer(), 3),
            ("b", TfidfVectorizer(), 4),
        ]
    )


def test_our_own_features_of_texts_in_a_saved_pipeline(folder, ask):
    frame = pd.read_csv("songs.csv")
    words = ColumnTransformer([("t", nl.features.FrequentWords(0.5), "title")])
    model = nl.make_pipeline(words, nl.MLkNN(4))
    model.fit(frame[["title"]], frame["tags"].fillna(""))
    nl.save(model, "m")
    ranked = json.loads(ask("rank", "m", "new.csv", "--json"))
    assert each(ranked, "score") == model.rank(pd.read_csv("new.csv")[["title"]]).scores.tolist()


def test_folds_are_prepared_by_their_training_rows(folder, ask):
    how = ("--scale", "standard", "--split", "cv3", "--metric", "average_precision", "coverage")
    told = json.loads(ask("evaluate", "songs.csv", *PREPARED, *how, "--k", 4, "--json"))
    data = nl.datasets.load("songs.csv", text=["title", "body"], gaps=True)
    X = pd.read_csv("songs.csv")[["tempo", "loudness", "key", "title", "body"]]
    X = X.fillna({"key": "none", "body": ""}).to_numpy()
    found = []
    for part in splits(data, "cv3"):
        model = nl.make_pipeline(by_hand(), nl.MLkNN(4)).fit(X[part.train], data.Y[part.train])
        scores, decided = model.label_scores(X[part.test]), model.predict(X[part.test])
        found.append(evaluate(data.Y[part.test], scores, decided, "paper"))
    for name, value in told["results"][0]["metrics"].items():
        assert value == pytest.approx(np.mean([one[name] for one in found]), abs=1e-12)


def test_tune_and_compare_prepare_alike(folder, ask):
    how = ("--scale", "minmax", "--split", "cv3", "--metric", "ranking_loss", "--json")
    evaluated = json.loads(ask("evaluate", "songs.csv", *PREPARED, *how, "--k", 4))
    compared = json.loads(
        ask("compare", "songs.csv", *PREPARED, *how, "--k", 4, "--algorithm", "MLkNN")
    )
    tuned = json.loads(ask("tune", "songs.csv", *PREPARED, *how, "--k", 4))
    expected = evaluated["results"][0]["metrics"]["ranking_loss"]
    assert compared["results"][0]["metrics"]["ranking_loss"] == expected
    assert tuned["best"]["ranking_loss"] == pytest.approx(expected)
    assert compared["impute"] == tuned["impute"] == "median"
    assert "--impute median --scale minmax --text title body" in tuned["fit_command"]


def test_with_text_the_scale_is_chosen(folder, ask):
    told = json.loads(ask("fit", "songs.csv", *PREPARED, "-o", "m", "--json"))
    assert told["scale"] in ("minmax", "standard")
    printed = ask("fit", "songs.csv", *PREPARED, "-o", "m")
    assert f"impute median, scale auto ({told['scale']})" in printed
    told = json.loads(ask("evaluate", "songs.csv", *PREPARED, "--split", "cv3", "--json"))
    assert told["scale"] == "auto"
    assert set(told["chosen_scales"]) <= {"minmax", "standard"}
    assert "scale auto (" in ask("tune", "songs.csv", *PREPARED, "--k", 3)
    assert (
        json.loads(ask("fit", "songs.csv", *PREPARED, "-o", "m", "--scale", "none", "--json"))[
            "scale"
        ]
        == "none"
    )


class NoPolars:
    def find_spec(self, name, *_):
        if name == "polars":
            raise ModuleNotFoundError(name)


def test_gaps_among_numbers_alone_need_no_polars(folder, ask, fail, monkeypatch):
    monkeypatch.delitem(sys.modules, "polars")
    monkeypatch.setattr(sys, "meta_path", [NoPolars(), *sys.meta_path])
    some = ("--ignore", "key", "title", "body")
    ask("fit", "songs.csv", *some, "--impute", "zero", "--scale", "standard", "-o", "m")
    assert [type(step).__name__ for _, step in nl.load("m").steps] == ["Pipeline", "MLkNN"]
    ranked = json.loads(ask("rank", "m", "new.csv", "--json"))
    X = nl.datasets.load("new.csv", labels=(), ignore=["key", "title", "body"], gaps=True).X
    assert np.isnan(X).sum() == 2
    named = pd.DataFrame(X, columns=["tempo", "loudness"])
    assert each(ranked, "score") == nl.load("m").rank(named).scores.tolist()
    for options in (PREPARED, ("--impute", "mean", "--ignore", "title", "body")):
        assert "nearlabel[tables]" in fail("fit", "songs.csv", *options, "-o", "m")


def test_errors_suggest_options(folder, ask, fail):
    message = fail("fit", "songs.csv", "-o", "m")
    assert all(part in message for part in ("line 2", "'key'", "--impute"))
    message = fail("fit", "songs.csv", "--impute", "mean", "-o", "m")  # it begins with 1984
    assert all(part in message for part in ("'title'", "--text", "--categories"))
    ignored = ("--impute", "mean", "--ignore", "title")
    message = fail("fit", "songs.csv", *ignored, "-o", "m")
    assert all(part in message for part in ("'body'", "--text", "--ignore"))
    assert "'tune'" in fail("fit", "songs.csv", "--text", "tune", "-o", "m")
    ask("fit", "songs.csv", "--ignore", "loudness", "tempo", *PREPARED, "-o", "words")
    write(folder / "empty.csv", [{**row, "title": "x"} for row in rows(30, 0)])
    message = fail("fit", "empty.csv", *PREPARED, "-o", "m")
    assert all(part in message for part in ("--text", "'title'"))
    whole = [{"tempo": 1.5 + row, "tags": "a;b" if row % 2 else "a"} for row in range(20)]
    write(folder / "whole.csv", whole)
    ask("fit", "whole.csv", "-o", "whole", "--scale", "minmax")
    write(folder / "gap.csv", [{"tempo": ""}])
    message = fail("rank", "whole", "gap.csv")
    assert "'tempo'" in message
    assert "gaps" not in message
    for verb in (("fit", "-o", "m"), ("evaluate",), ("tune",), ("compare",)):
        assert "--impute median" in fail(verb[0], "songs.csv", *verb[1:])
    for verb in (("describe", "songs.csv"), ("convert", "songs.csv", "songs.json")):
        assert "; --gaps accepts missing cells)" in fail("datasets", *verb)
    nl.datasets.save(nl.datasets.make_local_labels(9, 2, 3), folder / "made.npz")
    assert "--impute median is not supported" in fail(
        "fit", "made.npz", "--impute", "mean", "-o", "m"
    )


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("a,b\n1,\n", "got '' (the cell is empty)"),
        ("a,b\n1,2\n1,?\n", "got '?'"),
        ("a,b\n1,2\n1,w\n", "got 'w'"),
        ("a,b,labels,tags\n1,2,p,q\n", "also looks like labels"),
        ("a,b\n" + "".join(f"{row},w{row}\n" for row in range(200)), "cannot be a category"),
    ],
)
@pytest.mark.parametrize("verb", ["rank", "predict"])
def test_only_options_of_the_command_are_suggested(folder, fail, verb, table, told):
    """A model without column names relies on the reader of a table."""
    nl.save(nl.BRkNN(1).fit(np.eye(3), np.eye(3, dtype=int)), "model")
    (folder / "table.csv").write_text(table)
    message = fail(verb, "model", "table.csv")
    assert message.rstrip().endswith(told)
    assert not re.search(r"--(gaps|impute|text|ignore|categories)|\w=", message)


def test_words_that_the_model_does_not_know(folder, answer):
    answer("fit", "songs.csv", *PREPARED, "-o", "m")
    write(folder / "odd.csv", [{**row, "key": "H"} for row in rows(2, 3)])
    code, _, told = answer("rank", "m", "odd.csv")
    assert (code, told.count("\n")) == (0, 1)
    assert all(part in told for part in ("odd.csv", "'key'", "'H'"))


def test_categories_that_look_like_numbers(folder, ask):
    table = [
        {"genre": 7 if row % 3 else 20, "x": row % 5, "tags": "a" if row % 3 else "b"}
        for row in range(30)
    ]
    write(folder / "genres.csv", table)
    how = ("--categories", "genre", "--scale", "minmax", "--algorithm", "BRkNN", "--k", 5)
    told = json.loads(ask("fit", "genres.csv", "-o", "m", *how, "--json"))
    kinds = {column["name"]: (column["kind"], column["values"]) for column in told["columns"]}
    assert kinds == {"genre": ("category", 2), "x": ("number", None)}
    assert nl.load("m").feature_names_in_.tolist() == ["genre=20", "genre=7", "x"]
    assert json.loads(ask("rank", "m", "genres.csv", "--json"))[0]["labels"][0]["label"] == "b"


def test_a_pipeline_made_in_python_answers_on_the_command_line(folder, ask, frame):
    """Columns by name and by place, in nested pipelines; those it drops need not be there."""
    songs = pd.read_csv("songs.csv").fillna({"title": "", "body": ""})
    songs["comment"] = "of no use"
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    columns = ColumnTransformer(
        [
            ("tempo", make_pipeline(SimpleImputer(), MinMaxScaler()), ["tempo"]),
            ("words", words, [songs.columns.get_loc("key")]),
            ("title", CountVectorizer(), "title"),
        ]
    )
    Y = nl.datasets.load("songs.csv", text=["title", "body"], gaps=True).Y
    nl.save(nl.make_pipeline(columns, nl.BRkNN(5)).fit(songs, Y), "own")
    ranked = json.loads(ask("rank", "own", "new.csv", "--json", "--top", 3))
    best = nl.load("own").rank(frame.fillna({"title": ""}), 3)
    assert each(ranked, "label") == best.labels.astype(str).tolist()
    assert each(ranked, "score") == best.scores.tolist()


def test_pipelines_without_a_column_transformer(folder, ask, fail, frame):
    songs = pd.read_csv("songs.csv")
    words = nl.make_pipeline(OneHotEncoder(handle_unknown="ignore"), nl.BRkNN(5))
    nl.save(words.fit(songs[["key"]], songs["tags"]), "words")
    ranked = json.loads(ask("rank", "words", "new.csv", "--json"))
    assert each(ranked, "score") == words.rank(frame[["key"]]).scores.tolist()
    texts = nl.make_pipeline(CountVectorizer(), nl.BRkNN(5))
    nl.save(texts.fit(songs["title"], songs["tags"]), "texts")
    assert "texts" in fail("rank", "texts", "new.csv")


NUMBERS, KEY = ["tempo", "loudness"], ["key"]
ENCODED = ("words", OneHotEncoder(handle_unknown="ignore"), KEY)


@pytest.mark.parametrize(
    "steps",
    [
        ["passthrough", ColumnTransformer([ENCODED, ("n", SimpleImputer(), NUMBERS)])],
        [ColumnTransformer([ENCODED, ("n", SimpleImputer(), NUMBERS)]), None, "passthrough"],
        [ColumnTransformer([ENCODED], remainder="passthrough"), SimpleImputer()],
        [ColumnTransformer([ENCODED], remainder=MinMaxScaler()), MaxAbsScaler(), SimpleImputer()],
        [make_pipeline(None, ColumnTransformer([("n", MinMaxScaler(), NUMBERS)]), SimpleImputer())],
        [
            FeatureUnion(
                [
                    ("words", make_pipeline(None, ColumnTransformer([ENCODED]))),
                    ("numbers", ColumnTransformer([("n", SimpleImputer(), NUMBERS)])),
                ]
            )
        ],
    ],
)
def test_steps_that_do_nothing_and_gaps_that_are_filled_later(folder, ask, frame, steps):
    songs, columns = pd.read_csv("songs.csv"), [*NUMBERS, *KEY]
    model = nl.make_pipeline(*steps, nl.BRkNN(3)).fit(songs[columns], songs["tags"])
    nl.save(model, "own")
    ranked = json.loads(ask("rank", "own", "new.csv", "--json"))
    assert frame[NUMBERS].isna().any(axis=None)
    assert each(ranked, "score") == model.rank(frame[columns]).scores.tolist()


def test_words_in_columns_without_names(folder, fail):
    """Possible only in Python: a reader would turn words into numbers."""
    words = np.array([["a"], ["b"], ["a"], ["b"]], dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = nl.make_pipeline(encoder, nl.BRkNN(1)).fit(words, ["x", "y", "x", "y"])
    nl.save(model, "own")
    write(folder / "words.csv", [{"word": "b"}])
    assert "names" in fail("rank", "own", "words.csv")


def test_a_scale_is_recommended_where_it_helps(here, answer, tmp_path):
    for verb in (("fit", "-o", tmp_path / "m"), ("evaluate",), ("compare",), ("tune", "--k", 5)):
        code, _, told = answer(verb[0], "songs.csv", *verb[1:])
        assert code == 0
        assert "try --scale minmax" in told
        assert told.count("\n") == 1
        assert answer(verb[0], "songs.csv", *verb[1:], "--scale", "none")[2] == ""
    answer("fit", "songs.csv", "--scale", "auto", "-o", tmp_path / "m")
    assert type(nl.load(tmp_path / "m")[0]) is MinMaxScaler


def test_labels_that_were_forgotten(folder, answer):
    table = [
        {"x": row / 7, "happy": row % 2, "sad": row % 3 // 2, "calm": row % 5 // 4}
        for row in range(30)
    ]
    write(folder / "onehot.csv", table)
    fit = ("fit", "onehot.csv", "-o", "m", "--k", 3, "--labels", "happy")
    code, _, told = answer(*fit)
    assert code == 0
    assert all(part in told for part in ("'sad', 'calm'", "--labels", "--ignore"))
    assert "'x'" not in told
    assert answer(*fit, "sad", "calm")[2] == ""


def test_the_example_of_the_documentation(folder, ask):
    """The two commands and the Python code give the same ranking, and read each other's model."""
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    how_to = page[page.index("## A spreadsheet") : page.index("## Broken")]
    (commands,) = re.findall(r"```sh\n(.*?)```", how_to, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", how_to, re.DOTALL)
    fit, rank = (line.split()[1:] for line in commands.splitlines())
    ask(*fit)
    ask(*fit, "--scale", "minmax")  # as in the Python code; by default the command chooses a scale
    ranked = json.loads(ask(*rank, "--json"))
    names = {**globals(), "make_column_transformer": make_column_transformer}
    exec(compile(code, "data.md", "exec"), names)
    assert len(code.splitlines()) <= 10
    assert names["ranked"].names.tolist() == each(ranked, "label")
    np.testing.assert_allclose(names["ranked"].scores, each(ranked, "score"))
    again = json.loads(ask(*rank, "--json"))  # with the model saved by the Python code
    assert each(again, "label") == each(ranked, "label")
    assert ask("predict", "songs.model", "new.csv").count("song ") == 9
