"""Data sets by name and path, and round trips in every format."""

import gzip
import io
import re
import sys
import tracemalloc
import zipfile
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nearlabel as nl
from nearlabel.common.files import replacing
from nearlabel.datasets import DataError, Dataset, text_lines
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.formats import FORMATS

pytestmark = pytest.mark.usefixtures("own_parquet_files")
SUFFIXES = [row.suffixes[0] for row in FORMATS.values()]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")


@pytest.fixture
def made():
    data = nl.datasets.make_local_labels(30, 4, 5)
    names = np.array([f"x{column}" for column in range(4)])
    return Dataset(data.X.astype(np.float64), data.Y, data.label_names, names, data.train)


def assert_same(one, other, but=()):
    dense = [X.toarray() if sparse.issparse(X) else X for X in (one.X, other.X)]
    np.testing.assert_array_equal(*dense)
    assert one.Y.shape == other.Y.shape
    assert (one.Y != other.Y).nnz == 0
    for key in {"label_names", "feature_names", "train", "row_names"} - set(but):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key), err_msg=key)


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6)


@st.composite
def datasets(draw):
    n, d, q = (draw(st.integers(1, 5)) for _ in range(3))
    values = st.floats(allow_nan=False, allow_infinity=False) | st.just(0.0)
    X = np.array(draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    Y = np.array([[draw(st.integers(0, 1)) for _ in range(q)] for _ in range(n)])
    names = [draw(st.none() | st.lists(text, min_size=k, max_size=k, unique=True)) for k in (q, d)]
    label_names, feature_names = (None if part is None else np.array(part) for part in names)
    train = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    rows = draw(st.none() | st.lists(text, min_size=n, max_size=n))
    return Dataset(
        sparse.csr_array(X) if draw(st.booleans()) else X,
        sparse.csr_array(Y),
        label_names,
        feature_names,
        None if train is None else np.array(train),
        None if rows is None else np.array(rows),
    )


@given(data=datasets())
def test_round_trip(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("data")
    for suffix in SUFFIXES:
        path = folder / f"{suffix[1:]}{suffix}"
        lacks_rows = suffix in (".arff", ".txt") and data.row_names is not None
        told = pytest.warns(UserWarning, match="names of rows") if lacks_rows else nullcontext()
        with told:
            nl.datasets.save(data, path)
        assert_same(nl.datasets.load(path), data, but={"row_names"} if lacks_rows else ())


def test_a_warning_lists_what_a_format_cannot_store(tmp_path, made):
    data = Dataset(made.X, made.Y, extra={"bag": np.arange(30)})
    nl.datasets.save(data, tmp_path / "one.npz")
    assert nl.datasets.load(tmp_path / "one.npz").extra["bag"].tolist() == list(range(30))
    with pytest.warns(UserWarning, match="'csv'.* bag"):
        nl.datasets.save(data, tmp_path / "one.csv")


def test_a_failed_save_leaves_the_old_file(tmp_path, made):
    path = tmp_path / "one.jsonl"
    nl.datasets.save(made, path)
    before = path.read_bytes()
    broken = Dataset(made.X, made.Y, made.label_names[:-1])
    with pytest.raises(ValueError, match="label_names .*5.*4"):
        nl.datasets.save(broken, path)
    surrogate = Dataset(made.X, made.Y, np.array(["\ud800", *"abcd"]))
    with pytest.raises(ValueError, match=r"ud800"):
        nl.datasets.save(surrogate, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["one.jsonl"]


@pytest.mark.parametrize("suffix", [".arff", ".txt"])
def test_files_that_belong_together_are_all_new_or_all_old(tmp_path, made, monkeypatch, suffix):
    nl.datasets.save(made, tmp_path / f"one{suffix}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = np.array(list("vwxyz"))
    other = Dataset(made.X[:, :2], made.Y, names, made.feature_names[:2], made.train)
    module = "arff" if suffix == ".arff" else "sparse_text"

    class Interrupted:
        def __init__(self, path):
            self._file = replacing(path)
            self._is_last = str(path).endswith(f"one{suffix}")

        def __enter__(self):
            file = self._file.__enter__()
            return self if self._is_last else file

        def __exit__(self, *error):
            return self._file.__exit__(*error)

        def write(self, _):
            raise KeyboardInterrupt

    monkeypatch.setattr(f"nearlabel.datasets.{module}.replacing", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        nl.datasets.save(other, tmp_path / f"one{suffix}")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_the_data_folder(tmp_path, monkeypatch, made):
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("NEARLABEL_DATA", f"{first}:{second}:{tmp_path / 'none'}")
    for folder, names in ((first, ["toy.npz"]), (second, ["toy.csv", "other.jsonl"])):
        folder.mkdir()
        for name in names:
            nl.datasets.save(made, folder / name)
    (second / "notes.md").write_text("nothing")
    assert list(nl.datasets.available().items()) == [
        ("other", second / "other.jsonl"),
        ("toy", first / "toy.npz"),
    ]
    assert_same(nl.datasets.load("toy"), made)
    assert_same(nl.datasets.load("other"), made)
    with pytest.raises(FileNotFoundError, match="'mine'.*first.*second"):
        nl.datasets.load("mine")
    for name in ("../toy", "first/../../toy"):
        with pytest.raises(FileNotFoundError):
            nl.datasets.load(name)
    with pytest.raises(TypeError, match="source.*name.*path.*5"):
        nl.datasets.load(5)
    with pytest.raises(ValueError, match="first .*folder"):
        nl.datasets.load(first)


def test_the_users_cache_is_the_default(monkeypatch):
    monkeypatch.delenv("NEARLABEL_DATA", raising=False)
    assert [folder.name for folder in nl.datasets.data_folders()] == ["nearlabel"]


def test_two_files_of_a_split(tmp_path, made):
    parts = [made.rows(made.train), made.rows(~made.train)]
    for part, data in zip(("train", "test"), parts, strict=True):
        nl.datasets.save(data, tmp_path / f"toy-{part}.arff")
    (tmp_path / "toy-train.xml").rename(tmp_path / "toy.xml")
    (tmp_path / "toy-test.xml").unlink()
    data = nl.datasets.load(tmp_path / "toy")
    assert data.train.tolist() == sorted(made.train.tolist(), reverse=True)
    np.testing.assert_array_equal(data.X, np.vstack([part.X for part in parts]))
    assert_same(nl.datasets.load(tmp_path / "toy-test.arff"), parts[1])
    other = Dataset(parts[1].X, parts[1].Y, made.label_names, made.feature_names[::-1])
    nl.datasets.save(other, tmp_path / "toy-test.arff")
    with pytest.raises(DataError, match="toy-test.arff.*feature_names.*toy-train.arff"):
        nl.datasets.load(tmp_path / "toy")


def test_tables_of_two_parts_are_two_data_sets(tmp_path, monkeypatch):
    (tmp_path / "toy_train.csv").write_text("x,tags\n1,b;c\n2,a\n")
    (tmp_path / "toy_test.csv").write_text("x,tags\n3,d;a\n")
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    assert list(nl.datasets.available()) == ["toy_test", "toy_train"]
    assert nl.datasets.load("toy_train").label_names.tolist() == ["a", "b", "c"]


def test_an_archive_must_be_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        archive.writestr("toy.csv", "x,tags\n1,a\n")
    with pytest.raises(ValueError, match="toy.zip is an archive; unpack it first"):
        nl.datasets.load(tmp_path / "toy.zip")


def test_files_as_the_repository_distributes_them(tmp_path, made):
    nl.datasets.save(Dataset(made.X, made.Y), tmp_path / "Toy_data.txt")
    (tmp_path / "toy_trSplit.txt").write_text("1 2 3\n4 5 6\n")
    (tmp_path / "toy_tstSplit.txt").write_text("2 3 4\n")
    (tmp_path / "README.txt").write_text("hello\n")
    data = nl.datasets.load(tmp_path / "Toy_data.txt")
    assert np.flatnonzero(data.train).tolist() == [0, 3]


def test_encodings(tmp_path):
    path = tmp_path / "toy.csv"
    path.write_bytes("x,tags\n1,é\n".encode("latin-1"))
    assert nl.datasets.load(path, encoding="latin-1").label_names.tolist() == ["é"]
    for encoding in ("foo", "punycode", "cp037", "rot13", None):
        with pytest.raises(ValueError, match="encoding.*'utf-8'.*'latin-1'.*'utf-16'"):
            nl.datasets.load(path, encoding=encoding)


WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig")


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "arff", "txt"])
@pytest.mark.parametrize("encoding", WIDE)
def test_wide_encodings(tmp_path, made, suffix, encoding, zipped):
    """Lines are split in text, not in bytes, where b"\\n" may be half of a letter."""
    path = tmp_path / f"toy.{suffix}"
    names = np.array([f"\u010a\u0a0d {label}" for label in range(made.Y.shape[1])])
    nl.datasets.save(replace(made, label_names=names), path)
    expected = nl.datasets.load(path)
    assert expected.label_names.tolist() == names.tolist()
    for file in tmp_path.iterdir():
        content = file.read_text("utf-8").encode(encoding)
        file.write_bytes(gzip.compress(content) if zipped and file == path else content)
    found = [nl.datasets.load(path, encoding=encoding)]
    if encoding in ("utf-16", "utf-32"):  # a mark says what the encoding is
        found += [nl.datasets.load(path), nl.datasets.load(path, encoding="latin-1")]
    for data in found:
        assert_same(data, expected)


def test_invalid_wide_text(tmp_path, monkeypatch):
    path = tmp_path / "toy.csv"
    path.write_bytes("x,tags\n".encode("utf-16-le") + b"\x00\xd8\x31\x00")
    with pytest.raises(DataError, match=r"line \d: not utf-16-le text"):
        nl.datasets.load(path, encoding="utf-16-le")
    with pytest.raises(DataError, match="line 1: contains a NUL byte.*encoding='utf-16'"):
        nl.datasets.load(path)
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1000)
    path.write_text("x,tags\n1," + "a" * 2000 + "\n", "utf-16")
    with pytest.raises(DataError, match="line 2: the line is longer"):
        nl.datasets.load(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_standard_input_with_a_mark(monkeypatch, encoding):
    text = '{"x": 1, "tags": ["a"]}\n{"x": 2, "tags": ["b"]}\n'
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode(encoding))))
    monkeypatch.setattr(sys, "stdin", stream)
    assert nl.datasets.load("-").X.tolist() == [[1], [2]]
    assert not stream.buffer.closed


def test_formats_are_detected(tmp_path, monkeypatch, made):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    nl.datasets.save(made, tmp_path / "toy.npz")
    nl.datasets.save(made.rows(np.arange(7)), tmp_path / "toy.csv")
    assert len(nl.datasets.load("toy")) == 30
    assert len(nl.datasets.load("toy", format="csv")) == 7
    assert len(nl.datasets.load(tmp_path / "toy", format="csv")) == 7
    with pytest.raises(FileNotFoundError):
        nl.datasets.load("toy", format="arff")


def test_texts_next_to_sparse_text_are_not_data_sets(tmp_path, monkeypatch, made):
    monkeypatch.setenv("NEARLABEL_DATA", str(tmp_path))
    nl.datasets.save(made, tmp_path / "toy.txt")
    (tmp_path / "README.txt").write_text("hello")
    assert list(nl.datasets.available()) == ["toy"]


def test_sparse_text_neither_reads_nor_removes_other_files(tmp_path, made):
    (tmp_path / "toy.features.txt").write_text("my notes\n")
    bare = Dataset(made.X, made.Y)
    with pytest.raises(ValueError, match="toy.features.txt"):
        nl.datasets.save(bare, tmp_path / "toy.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["toy.features.txt"]


def test_standard_input(monkeypatch):
    def read(content, **options):
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stream)
        return nl.datasets.load("-", **options)

    assert read(b"x,tags\n1,a\n").X.tolist() == [[1]]
    assert read(b'{"x": 2, "tags": "a"}\n').X.tolist() == [[2]]
    assert read(b"1 1 1\n0 0:3\n", format="sparse").X.toarray().tolist() == [[3]]
    arff = b"@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute x real\n@data\n1,4\n"
    assert read(arff).X.tolist() == [[4]]
    with pytest.raises(DataError, match="^standard input, line 2: expected 2 .*1$"):
        read(b"x,tags\n1\n")


def test_options_that_are_refused(tmp_path, made):
    nl.datasets.save(made, tmp_path / "toy.npz")
    nl.datasets.save(made, tmp_path / "toy.csv")
    for path, options, message in (
        ("toy.npz", {"tags": "a"}, "tags=.*'npz'.*'a'"),
        ("toy.npz", {"labels": ["x1"]}, "labels=.*'npz'.*'x1'"),
        ("toy.csv", {"nominal": "code"}, "nominal=.*'csv'.*'code'"),
        ("toy.csv", {"tags": "x0", "labels": ["x1"]}, "tags=.*labels="),
        ("toy.csv", {"xml": "a.xml"}, "xml=.*'csv'.*'a.xml'"),
        ("toy.csv", {"format": "xls"}, "format.*'npz', 'arff'.*'xls'"),
        ("toy.npz", {"nominal": "both"}, "nominal.*'onehot', 'code'.*'both'"),
    ):
        with pytest.raises(ValueError, match=message):
            nl.datasets.load(tmp_path / path, **options)
    with pytest.raises(TypeError, match="ignore.*'x0'"):
        nl.datasets.load(tmp_path / "toy.csv", ignore="x0")
    with pytest.raises(TypeError, match="'tag'.*labels, tags, separator"):
        nl.datasets.load(tmp_path / "toy.csv", tag="x0")
    whole = nl.datasets.load(tmp_path / "toy.csv", labels=np.array([]), ignore=np.array([]))
    assert whole.Y.shape == (30, 0)
    (tmp_path / "toy.csv").rename(tmp_path / "toy.dat")
    with pytest.raises(ValueError, match="toy.dat.*format"):
        nl.datasets.load(tmp_path / "toy.dat")
    assert_same(nl.datasets.load(tmp_path / "toy.dat", format="csv"), made)
    with pytest.raises(ValueError, match=r"path.*toy.xls"):
        nl.datasets.save(made, tmp_path / "toy.xls")


def test_features_in_the_order_of_a_model(tmp_path, made):
    for suffix in SUFFIXES:
        path = tmp_path / f"toy{suffix}"
        nl.datasets.save(made, path)
        data = nl.datasets.load(path, features=["x2", "x0"], labels=())
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        np.testing.assert_array_equal(X, made.X[:, [2, 0]])
        assert data.Y.shape == (30, 0)
        with pytest.raises(DataError, match=r"toy.*feature.*'y', 'z'$"):
            nl.datasets.load(path, features=["x2", "y", "z"], labels=())


def test_features_of_a_file_that_declares_billions_of_columns(tmp_path):
    path = tmp_path / "toy.txt"
    path.write_text("2 2147483647 1\n0 5:1 9:2 2147483646:7\n 6:3 9:4\n")
    tracemalloc.start()
    data = nl.datasets.load(path, features=["2147483646", "0", "9"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.X.toarray().tolist() == [[7, 0, 2], [0, 0, 4]]
    assert peak < 2**20
    with pytest.raises(DataError, match="toy.txt.*feature.*'2147483647'"):
        nl.datasets.load(path, features=["2147483647"])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_indices_have_32_bits_where_they_fit(tmp_path, suffix):
    """Other libraries refuse CSR matrices with wider ones."""
    X, Y = (sparse.csr_array(np.eye(6, width)) for width in (5, 3))
    for matrix in (X, Y):
        matrix.indices, matrix.indptr = (
            part.astype(np.int64) for part in (matrix.indices, matrix.indptr)
        )
    nl.datasets.save(Dataset(X, Y), tmp_path / f"toy{suffix}")
    again = nl.datasets.load(tmp_path / f"toy{suffix}")
    for matrix in (again.Y, *([again.X] if sparse.issparse(again.X) else [])):
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32


def declaring(count):
    """Small files that declare many labels."""
    archive = io.BytesIO()
    np.savez(archive, X=[[1.0]], Y_indices=[0], Y_indptr=[0, 1], Y_shape=[1, count])
    return {
        "toy.txt": f"1 1 {count}\n0 0:1\n".encode(),
        "toy.jsonl": b'{"nearlabel": 1, "features": 1, "labels": %d}\n' % count
        + b'{"features": [1], "labels": ["0"]}\n',
        "toy.npz": archive.getvalue(),
    }


@pytest.mark.parametrize(
    ("name", "where"), [("toy.txt", "line 1"), ("toy.jsonl", "line 1"), ("toy.npz", "not a data")]
)
def test_more_declared_labels_than_fit_into_memory(tmp_path, monkeypatch, name, where):
    monkeypatch.setattr("nearlabel.datasets.dataset.physical_memory", lambda: 2**32)
    path = tmp_path / name
    path.write_bytes(declaring(2**24)[name])
    assert nl.datasets.load(path).Y.shape == (1, 2**24)
    path.write_bytes(declaring(2**24 + 1)[name])
    with pytest.raises(DataError, match=f"{name}.*{where}.*{2**24 + 1} labels.*{2**24} "):
        nl.datasets.load(path)


def documented_options(name):
    """The options of a format, by the table of the document."""
    table = DOCUMENT[DOCUMENT.index("| option |") :].partition("\n\n")[0].splitlines()
    heads = [re.findall("`(.*?)`", cell) for cell in table[0].split("|")]
    column = next(place for place, head in enumerate(heads) if name in head)
    rows = [line.split("|") for line in table[3:]]
    return {word for row in rows if "yes" in row[column] for word in re.findall("`(.*?)`", row[1])}


def test_every_option_is_documented():
    listed = re.findall("^    ([a-z]+) : ", nl.datasets.load.__doc__, re.MULTILINE)
    assert {field.name for field in fields(ReadOptions)} <= set(listed)
    assert all(row.options <= set(listed) for row in FORMATS.values())
    for name, row in FORMATS.items():
        assert all(f'"{name}"' in told.__doc__ for told in (nl.datasets.load, nl.datasets.save))
        assert f"| `{name}`" in DOCUMENT or f", `{name}` |" in DOCUMENT
        assert all(f"`{suffix}`" in DOCUMENT for suffix in row.suffixes)
        assert documented_options(name) == row.options


def test_progress(tmp_path, made):
    many = Dataset(np.tile(made.X, (100, 1)), sparse.vstack([made.Y] * 100, format="csr"))
    for suffix in (".csv", ".arff", ".txt", ".jsonl"):
        nl.datasets.save(many, tmp_path / f"toy{suffix}")
        calls = []
        nl.datasets.load(
            tmp_path / f"toy{suffix}", progress=lambda *call, to=calls: to.append(call)
        )
        size = (tmp_path / f"toy{suffix}").stat().st_size
        assert len(calls) >= 3
        assert all(0 < done <= total == size for done, total in calls)


@pytest.mark.parametrize("content", [b" " * 2**20, b"x," * 2**20, b"\x1f\x8b" + b"0" * 99])
def test_an_endless_line_takes_bounded_memory(tmp_path, monkeypatch, content):
    monkeypatch.setattr("nearlabel.datasets.text_lines.LONGEST_LINE", 2**16)
    for suffix in (".csv", ".arff", ".txt", ".jsonl"):
        path = tmp_path / f"toy{suffix}"
        path.write_bytes(content)
        with pytest.raises(DataError, match="line 1: .*(longer|compressed)"):
            nl.datasets.load(path, labels=["x"] if suffix in (".arff", ".csv") else None)


@pytest.mark.parametrize(
    ("suffix", "is_sparse"),
    [
        *((".arff", False), (".jsonl", True)),
        *((".csv", False), (".txt", True)),  # always dense, always sparse
        pytest.param(".arff", True, marks=pytest.mark.slow),
        pytest.param(".jsonl", False, marks=pytest.mark.slow),
    ],
)
def test_reading_takes_little_more_memory_than_the_result(tmp_path, suffix, is_sparse):
    """Only few lines are Python objects at the same time."""
    X = np.random.default_rng(0).random((3000, 40)).round(4)
    X = sparse.csr_array(X * (X > 0.8)) if is_sparse else X
    Y = sparse.csr_array(np.arange(3000)[:, None] % 7 == np.arange(7))
    nl.datasets.save(Dataset(X, Y), tmp_path / f"toy{suffix}")
    tracemalloc.start()
    data = nl.datasets.load(tmp_path / f"toy{suffix}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    parts = [data.Y.data, data.Y.indices, data.Y.indptr]
    parts += [data.X.data, data.X.indices, data.X.indptr] if sparse.issparse(data.X) else [data.X]
    assert peak < 5 * sum(part.nbytes for part in parts) + 2**19
