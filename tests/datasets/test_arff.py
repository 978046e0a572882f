import gzip
import tracemalloc

import arff as liac
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nearlabel as nl
from nearlabel.datasets import DataError
from nearlabel.datasets.arff import read_labels
from nearlabel.datasets.text_lines import TextFile

FILE = "toy.arff"
HEAD = """% a comment
@RELATION toy

@attribute size numeric
@ATTRIBUTE 'wide name' REAL
@attribute color {red, 'dark blue', green}
@attribute B {0,1}
@attribute A {0,1}
@DATA
"""
DENSE = HEAD + "1.5,-2,red,1,0\n% another comment\n\n0,1e-3,'dark blue',0,1\n7,8, green ,1,1\n"
SPARSE = (
    HEAD + "{0 1.5,1 -2,3 1}\n{1 1e-3,2 'dark blue',4 1}\n{ 0 7, 1 8, 2 green, 3 1, 4 1 }\n{}\n"
)
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels"><label name="A"/><label name="B"/></labels>"""


def test_dense_rows(put):
    put(XML, "toy.xml")
    data = nl.datasets.load(put(DENSE))
    np.testing.assert_array_equal(
        data.X, [[1.5, -2, 1, 0, 0], [0, 0.001, 0, 1, 0], [7, 8, 0, 0, 1]]
    )
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert data.label_names.tolist() == ["B", "A"]  # the order of the columns, not of the XML file
    names = ["size", "wide name", "color=red", "color=dark blue", "color=green"]
    assert data.feature_names.tolist() == names


def test_sparse_rows_leave_out_zeros_and_first_values(put):
    put(XML, "toy.xml")
    data = nl.datasets.load(put(SPARSE))
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(
        data.X.toarray(),
        [[1.5, -2, 1, 0, 0], [0, 0.001, 0, 1, 0], [7, 8, 0, 0, 1], [0, 0, 1, 0, 0]],
    )
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]


def test_a_label_whose_first_value_is_1_is_carried_where_it_is_left_out(put):
    text = "@relation r\n@attribute x numeric\n@attribute L {1,0}\n@data\n{0 1}\n{1 0}\n"
    data = nl.datasets.load(put(text), labels=["L"])
    assert data.Y.toarray().tolist() == [[1], [0]]


def test_nominal_values_as_codes(put):
    text = (
        "@relation r\n@attribute a {7,3}\n@attribute b {low,mid,high}\n@attribute c {YES,NO}\n"
        "@attribute L {FALSE,TRUE}\n@data\n3,high,NO,TRUE\n7,low,YES,FALSE\n"
    )
    data = nl.datasets.load(put(text), labels=["L"], nominal="code")
    assert data.X.tolist() == [[3, 2, 0], [7, 0, 1]]
    assert data.feature_names.tolist() == ["a", "b", "c"]
    assert data.Y.toarray().tolist() == [[1], [0]]


@pytest.mark.parametrize(("count", "names"), [(2, ["size", "wide name"]), (-2, ["B", "A"])])
def test_mekas_header(put, count, names):
    text = DENSE.replace("@RELATION toy", f"@relation 'toy: -C {count} -split-number 2'")
    text = text.replace("1.5,-2", "1,0").replace("0,1e-3", "0,1").replace("7,8", "1,1")
    data = nl.datasets.load(put(text))
    assert data.label_names.tolist() == names
    assert data.train.tolist() == [True, True, False]


def test_a_file_and_its_compressed_twin(put, tmp_path):
    put(XML, "toy.xml")
    plain = nl.datasets.load(put(DENSE))
    (tmp_path / "packed.arff.gz").write_bytes(gzip.compress(DENSE.encode()))
    (tmp_path / "packed.xml.gz").write_bytes(gzip.compress(XML.encode()))
    packed = nl.datasets.load(tmp_path / "packed.arff.gz")
    np.testing.assert_array_equal(plain.X, packed.X)


def test_windows_line_ends_and_byte_order_mark(put, tmp_path):
    put(XML, "toy.xml")
    plain = nl.datasets.load(put(DENSE))
    (tmp_path / "toy.arff").write_bytes(b"\xef\xbb\xbf" + DENSE.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(nl.datasets.load(tmp_path / "toy.arff").X, plain.X)


def test_ignored_attributes_and_text(put):
    text = "@relation r\n@attribute key string\n@attribute x numeric\n@attribute L {0,1}\n@data\n"
    path = put(text + "'a, b',2,1\n")
    with pytest.raises(DataError, match=r"toy.arff: 'key' .*ignore="):
        nl.datasets.load(path, labels=["L"])
    data = nl.datasets.load(path, labels=["L"], ignore=["key"])
    assert data.X.tolist() == [[2]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.5,-2", "1.5,x", r"toy.arff, line 10: column 'wide name'.*'x'"),
        ("1.5,-2", "?,-2", r"line 10: column 'size'.*'\?'"),
        ("1.5,-2", "1_5,-2", r"line 10: column 'size'.*'1_5'"),
        ("1.5,-2", "1e999,-2", r"line 10: column 'size'.*'1e999'"),
        ("1.5,-2", "nan,-2", r"line 10: column 'size'.*'nan'"),
        ("1.5,-2", "1.5", r"line 10: .*5 cells.*4"),
        (
            ",red",
            ",pink",
            r"line 10: column 'color'.*'red', 'dark blue', 'green'",
        ),
        ("'dark blue',0", "'dark blue,0", r"line 13: .*quoted value"),
        ("1.5,-2,red,1,0", "{0 1}", r"line 13: .*\{column value, …\}"),
        ("@DATA", "@dat", r"line 9: .*'@dat'"),
        ("'wide name'", "size", r"line 5: .*'size'"),
        ("REAL", "relational", r"line 5: .*'wide name'"),
        ("green}", "green", r"line 6: .*'color'.*'}'"),
        ("green}", "red}", r"line 6: .*'color'"),
        (
            "B {0,1}",
            "B {0,1,2}",
            r"'B'.*0.*1.*0",
        ),
        ("@attribute B {0,1}", "@attribute C {0,1}", r"labels.*'B'"),
    ],
)
def test_errors_name_the_file_the_line_and_what_was_expected(put, old, new, message):
    put(XML, "toy.xml")
    assert old in DENSE
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(DENSE.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{0 1.5",
            "{9 1.5",
            r"line 10: .*0.*4.*9 1.5,1 -2",
        ),
        ("{0 1.5", "{x 1.5", r"line 10: .*0.*4.*1.5"),
        ("{0 1.5", "{1 1.5", r"line 10: column 1 .*twice"),
        ("{0 1.5", "{0 1.5x", r"line 10: column 'size'.*'1.5x'"),
        ("3 1}", "3 1", r"line 10: .*\{column value, …\}"),
    ],
)
def test_errors_in_sparse_rows(put, old, new, message):
    put(XML, "toy.xml")
    assert old in SPARSE
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(SPARSE.replace(old, new, 1)))


def test_no_labels_no_rows_no_data(put):
    with pytest.raises(DataError, match="toy.arff.*labels"):
        nl.datasets.load(put(DENSE))
    put(XML, "toy.xml")
    with pytest.raises(DataError, match="line 9: .*row.*@data"):
        nl.datasets.load(put(HEAD))
    with pytest.raises(DataError, match="line 8: .*ends.*@data"):
        nl.datasets.load(put(HEAD.replace("@DATA\n", "")))
    path = put(DENSE)
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(DataError, match=r"toy.arff, line \d+: .*compressed.*damaged"):
        nl.datasets.load(path)
    path.write_bytes(DENSE.encode().replace(b"red", b"r\xe9d"))
    with pytest.raises(DataError, match="line 6: .*utf-8.*encoding="):
        nl.datasets.load(path)


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE labels [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<labels><label name="&b;"/></labels>"""
OUTSIDE = """<!DOCTYPE labels [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<labels><label name="x">&a;</label></labels>"""


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (LAUGHS, "line 2: .*document type"),
        (OUTSIDE, "line 1: .*document type"),
        ("<labels><label nam='x'/></labels>", "line 1: .*<label>.*name"),
        ("<labels><tag name='x'/></labels>", "line 1: expected <labels>.*<label>.*<tag>"),
        ("<labels><label name='x'/>", "line 1: .*XML.*no elem"),
        ("<labels><label name='x'/><label name='x'/></labels>", "'x'.* twice"),
        ("<labels>&nbsp;</labels>", "XML.*undefined entity"),
        ("no xml", "line 1: .*XML"),
    ],
)
def test_xml_that_is_refused(put, xml, message):
    put(xml, "toy.xml")
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(DENSE))


def test_two_words_for_yes_are_two_values(put):
    text = "@relation r\n@attribute a {t,y}\n@attribute L {0,1}\n@data\nt,1\ny,0\n"
    data = nl.datasets.load(put(text), labels=["L"])
    assert data.feature_names.tolist() == ["a=t", "a=y"]
    assert data.X.tolist() == [[1, 0], [0, 1]]


def test_unwanted_labels_are_not_features(put):
    put(XML, "toy.xml")
    data = nl.datasets.load(put(DENSE), labels=())
    assert data.X.shape == (3, 5)
    assert data.Y.shape == (3, 0)
    bare = DENSE.replace("@attribute B {0,1}\n", "").replace(",1,0\n", ",0\n")
    bare = bare.replace(",0,1\n", ",1\n").replace(",1,1\n", ",1\n")
    np.testing.assert_array_equal(nl.datasets.load(put(bare), labels=()).X, data.X)


def test_values_that_a_file_does_not_declare(put):
    wanted = ["color=red", "color=pink", "size"]
    data = nl.datasets.load(put(DENSE), labels=(), features=wanted)
    assert data.X.tolist() == [[1, 0, 1.5], [0, 0, 0], [0, 0, 7]]


@pytest.mark.parametrize("values", [4000])
def test_many_nominal_values_in_sparse_rows_take_little_memory(put, values):
    names = ",".join(f"v{value}" for value in range(values))
    rows = "".join(f"{{0 v{row % values},1 1}}\n" for row in range(5000))
    text = f"@relation r\n@attribute a {{{names}}}\n@attribute L {{0,1}}\n@data\n{rows}"
    path = put(text)
    tracemalloc.start()
    data = nl.datasets.load(path, labels=["L"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.X.shape == (5000, values)
    assert data.X.nnz == 5000
    assert peak < 2**23


def test_labels_of_a_hierarchy(put):
    xml = "<labels><label name='a'><label name='a/b'/></label><label name='c'></label></labels>"
    assert read_labels(TextFile(put(xml, "toy.xml"))) == ["a", "a/b", "c"]


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(data=st.data(), is_sparse=st.booleans())
def test_liac_reads_what_is_written_and_the_other_way_round(tmp_path_factory, data, is_sparse):
    """Values and codes are those of an independent reader, for plain names."""
    plain = st.text("abcXYZ_09", min_size=1, max_size=6)
    features = data.draw(st.lists(plain, min_size=1, max_size=4, unique=True))
    n = data.draw(st.integers(1, 5))
    X = np.array([[data.draw(numbers) for _ in features] for _ in range(n)])
    Y = np.array([[data.draw(st.integers(0, 1))] for _ in range(n)])
    folder = tmp_path_factory.mktemp("liac")
    given_X = sparse.csr_array(X) if is_sparse else X
    label = np.array(["a label"])
    dataset = nl.datasets.Dataset(given_X, sparse.csr_array(Y), label, np.array(features))
    nl.datasets.save(dataset, folder / "toy.arff")
    with (folder / "toy.arff").open(encoding="utf-8") as file:
        theirs = liac.load(file, return_type=liac.LOD if is_sparse else liac.DENSE)
    assert [name for name, _ in theirs["attributes"]] == [*features, "a label"]
    for row, (cells, x, y) in enumerate(zip(theirs["data"], X, Y, strict=True)):
        read = [cells.get(place, 0) for place in range(len(features) + 1)] if is_sparse else cells
        assert [float(value) for value in read] == [*x.tolist(), *y.tolist()], row
    ours = nl.datasets.load(folder / "toy.arff")
    np.testing.assert_array_equal(ours.X.toarray() if is_sparse else ours.X, X)
