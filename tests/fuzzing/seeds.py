"""Small valid files of every form, from which mutations start."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import nearlabel as nl
from nearlabel.datasets import Dataset, save
from nearlabel.datasets.parquet import write_parquet

_ARFF = """% a comment
@relation 'some: -C {c}'

@attribute width numeric
@ATTRIBUTE 'the "height" of' REAL
@attribute color {{red, 'light blue', "grün"}}
@attribute odd {{no,yes}}
@attribute k {{1,2,3}}
@attribute one {{0,1}}
@attribute 'l two' {{0,1}}
{split}@data
{rows}"""
_DENSE = "1.5,-2e3, red ,yes,1,0,1\n% between\n.5,0,'light blue',no,3,1,0\n-0,1e-5,grün,no,2,0,0\n"
_SPARSE = "{0 1.5, 1 -2,2 'light blue',6 1}\n{}\n{ 3 yes ,5 1}\n{4 3}\n"
_XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="one"></label>
<!-- other -->
<label name='l &amp; two &#xe9;'><label name="grün"/>
</label>
</labels>
"""
_TAGS = """file,tags,not
a.jpg,sea;2024;Places|Rome,sky
"b, c.jpg",,
grün.jpg," sea ;;7",
"""
_TAG_LINES = """{"file": "a.jpg", "tags": ["sea", 2024, "Places|Rome"], "not": ["sky"]}
{"file": "b.jpg", "tags": "sea;7", "sha256": "%s"}
{"id": 3, "file": "grün.jpg", "others": ["c.jpg"], "tags": [], "not": null}
""" % ("0f" * 32)
_XMP = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><!-- one -->
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="3">
   <dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/">
    <rdf:Bag><rdf:li>Rome</rdf:li><rdf:li>a &amp; b</rdf:li></rdf:Bag>
   </dc:subject>
   <xmp:Label>grün</xmp:Label>
  </rdf:Description>
  <rdf:Description rdf:about="" xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <lr:hierarchicalSubject><rdf:Seq><rdf:li>Places|Rome</rdf:li></rdf:Seq></lr:hierarchicalSubject>
  </rdf:Description>
  <rdf:Description d:subject="x/y" xmlns:d="http://purl.org/dc/elements/1.1/"/>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""
_CSV = [
    'id,width,color,tags\na,1.5,red,"x;y"\nb,-2e3,blue,\n"c ""d""",.5,red,"y; z"\n',
    "width;height;label:one;label:l two;split\n1;2;0;1;train\n3;-4;yes;No;test\n",
    'Tags\t"the width"\tfeature:id\nx|y\t1\t2\ny\t3\t1e300\n',
    "sep=|\nwidth|tags\n1|x;y\n-2|z\n",
    'labels,"a\nb",c\ngrün,0,"1"\n"p,q",1,0\n',
]
_JSONL = [
    '{"id": "a", "width": 1.5, "color": "red", "tags": "x;y"}\n'
    '{"tags": "y", "width": -2, "color": "blue", "id": "b"}\n',
    '{"features": [1, 2.5], "labels": ["x", "gr\\u00fcn"]}\n\n'
    '{"features": [0, -1e5], "labels": []}\n',
    '{"features": {"a": 1, "b": 2.5}, "tags": "x"}\n{"features": {}, "tags": "y"}\n',
    '{"nearlabel": 1, "features": 3, "labels": 2, "label_names": ["x", "y"]}\n'
    '{"features": {"0": 1, "2": 3}, "labels": ["y"], "split": "train", "id": 1}\n'
    '{"features": {}, "labels": [], "split": "test", "id": "b"}\n',
    '{"nearlabel": 1, "features": 2, "feature_names": ["a", "b"]}\n{"features": [1, 2]}\n',
    '{"width": 1, "label:one": 0, "label:two": true}\n'
    '{"width": 2, "label:one": 1, "label:two": 0}\n',
]
_SPARSE_TEXT = [
    "3 5 4\n0,2 0:1 3:2.5\n 1:-1e3\n3 4:0.5 2:7\n",
    "2 3 2\n0:1\n1 \n",
    "1 1 0\n 0:1\n\n",
]
_X = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
_Y = np.array([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]])


def _as_array(text: str) -> str:
    """JSON lines as one array, the first of its objects on several lines."""
    first, *others = filter(None, text.split("\n"))
    return ",\n".join(["[ " + first.replace(", ", ",\n "), *others]) + "\n]\n"


def _variants(text: str) -> list[bytes]:
    plain = text.encode()
    marked = b"\xef\xbb\xbf" + plain
    ends = [plain.replace(b"\n", b"\r\n"), plain[:-1]]
    return [plain, marked, *ends, gzip.compress(plain, mtime=0), text.encode("utf-16")]


@cache
def _written_seeds() -> dict[str, list[bytes]]:
    """Seeds that only the package itself can write."""
    split, names = np.array([True] * 4 + [False] * 2), np.array(["a", "b c"])
    data = Dataset(_X, sparse.csr_array(_Y.astype(np.int8)), names, None, split, None)
    sets = [
        data,
        replace(data, X=sparse.csr_array(_X), row_names=np.array(list("uvwxyz"))),
        replace(
            data, X=_X.astype(np.float32), feature_names=names, extra={"part": split.astype(int)}
        ),
    ]
    graph = nl.neighbor_graph(_X, 3)
    models = [
        nl.MLkNN(n_neighbors=3).fit(_X, _Y, label_names=["x", "y"]),
        nl.MLkNN(n_neighbors=2, smoothing=0, search=nl.ExactSearch()).fit(sparse.csr_array(_X), _Y),
        nl.MLkNN(n_neighbors=2, metric="cosine").fit(_X, np.where(_Y[:, 0], "yes", "no")),
        nl.MLkNN(n_neighbors=2, metric="precomputed").fit(abs(_X[:, :1] - _X[:, 0]), _Y),
        nl.MLkNN(n_neighbors=2).fit_graph(graph, _Y),
        make_pipeline(MinMaxScaler(), StandardScaler(), nl.MLkNN(n_neighbors=3)).fit(_X, _Y),
        MaxAbsScaler().fit(_X),
        graph,
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.npz"

        def content(write: Callable[[Path], None]) -> bytes:
            write(path)
            return path.read_bytes()

        tables = [data, replace(data, feature_names=names, row_names=np.array(list("uvwxyz")))]
        return {
            "parquet": [content(lambda path, one=one: write_parquet(one, path)) for one in tables],  # type: ignore[misc]
            "npz": [content(lambda path, one=one: save(one, path)) for one in sets],  # type: ignore[misc]
            "model": [content(lambda path, one=one: nl.save(one, path)) for one in models],  # type: ignore[misc]
        }


@cache
def _pipelines() -> list[bytes]:
    """Saved pipelines with every transformer that can be stored."""
    numbers, whole = np.tile(_X, (4, 3))[:, :5] + np.arange(24)[:, None] % 5, np.arange(72) % 7
    gaps = np.where(np.arange(120).reshape(24, 5) % 11 == 0, np.nan, numbers)
    words = np.array(["red", "green", "été"], object)[whole.reshape(24, 3) % 3]
    texts = ["sea and sand", "the night Sea", "city at night"] * 8
    table = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), RobustScaler()), [0, 2]),
            ("words", OneHotEncoder(handle_unknown="ignore"), slice(3, 6)),
            ("inner", ColumnTransformer([], remainder=MinMaxScaler()), [1]),
        ],
        transformer_weights={"numbers": 0.5},
    )
    union = FeatureUnion(
        [("raw", "passthrough"), ("pca", PCA(2)), ("none", "drop")], transformer_weights={"pca": 2}
    )
    cases = [
        (table, np.hstack([gaps[:, :1], numbers[:, :1], gaps[:, 1:2], words])),
        (make_pipeline(SimpleImputer(strategy="median"), union), gaps),
        (QuantileTransformer(n_quantiles=5), numbers),
        (make_pipeline(MaxAbsScaler(), Normalizer(), StandardScaler(with_mean=False)), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()), words),
        (OneHotEncoder(drop="first", sparse_output=False), whole.reshape(24, 3)),
        (
            make_pipeline(TfidfVectorizer(stop_words=["and"]), TruncatedSVD(2, random_state=0)),
            texts,
        ),
        (make_pipeline(CountVectorizer(ngram_range=(1, 2)), TfidfTransformer()), texts),
        (HashingVectorizer(n_features=64), texts),
    ]
    labels = np.tile(_Y, (4, 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed"
        found = []
        for transformer, items in cases:
            nl.save(nl.make_pipeline(transformer, nl.BRkNN(3)).fit(items, labels), path)
            found.append(path.read_bytes())
    return found


@cache
def seeds() -> dict[str, tuple[bytes, ...]]:
    """All seeds, by the name of their target."""
    heads = [
        _ARFF.format(c=c, split=split, rows=rows)
        for c, split, rows in (
            ("-2", "", _DENSE),
            ("", "% split: train 2, test 1\n", _DENSE),
            ("-2", "", _SPARSE),
            ("", "", _SPARSE),
        )
    ]
    arff_texts = [head.replace("-C '", "'") for head in heads]
    meka = "@relation 'x: -C 2 -split-number 1'\n@attribute a {0,1}\n@attribute b {0,1}\n" + (
        "@attribute 'c d' numeric\n@data\n0,1,2\n1,0,-3.5\n"
    )
    texts = {
        "arff": [*arff_texts, meka],
        "csv": _CSV,
        "jsonl": _JSONL,
        "json": [_as_array(text) for text in _JSONL],
        "sparse": _SPARSE_TEXT,
        "xml": [_XML],
        "tags": [_TAGS, "file\ttags\na.jpg\tsea\n"],
        "tag_lines": [_TAG_LINES],
    }
    found = {
        name: tuple(variant for text in some for variant in _variants(text))
        for name, some in texts.items()
    }
    others = (b"\x1f\x8b", b"\xff\xfe")  # packed, or UTF-16
    found["xmp"] = tuple(one for one in _variants(_XMP) if not one.startswith(others))
    written = {**_written_seeds(), "pipeline": _pipelines()}
    return found | {name: tuple(some) for name, some in written.items()}
