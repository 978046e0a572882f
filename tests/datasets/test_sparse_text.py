import numpy as np
import pytest

import nearlabel as nl
from nearlabel.datasets import DataError

FILE = "toy.txt"
TEXT = "4 5 3\n0,2 0:1.5 4:-2\n 1:3e-2\n1\n2 3:1 0:2\n"


def test_rows(put):
    data = nl.datasets.load(put(TEXT))
    assert data.X.toarray().tolist() == [
        [1.5, 0, 0, 0, -2],
        [0, 0.03, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [2, 0, 0, 1, 0],
    ]
    assert data.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert data.label_names is None


def test_what_stands_beside_it(put):
    put("sun\nsea\nsand\n", "toy.labels.txt")
    put("a\nb\nc\nd\ne\n", "toy.features.txt")
    put("train\ntest\ntrain\ntrain\n", "toy.split.txt")
    data = nl.datasets.load(put(TEXT))
    assert data.label_names.tolist() == ["sun", "sea", "sand"]
    assert data.feature_names.tolist() == list("abcde")
    assert data.train.tolist() == [True, False, True, True]


def test_the_repositorys_own_split_file(put):
    put("1 2\n3 4\n4 1\n", "toy_trSplit.txt")
    put("2 3\n", "toy_tstSplit.txt")
    data = nl.datasets.load(put(TEXT, "Toy_data.txt"))
    assert data.train.tolist() == [True, False, True, True]
    put("1\n9\n", "toy_trSplit.txt")
    with pytest.raises(DataError, match=r"toy_trSplit.txt, line 2: .*1.*4.*'9'"):
        nl.datasets.load(put(TEXT, "Toy_data.txt"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4 5 3", "4 5", r"toy.txt, line 1: .*features.*labels"),
        ("4 5 3", "4 0 3", r"line 1: .*1.*1.*2147483647.*4, 0, 3"),
        ("4 5 3", "4 5 9999999999", r"line 1: .*1.*1.*2147483647"),
        ("4 5 3", "5 5 3", r"line 5: .*5 rows.* 4$"),
        ("4 5 3", "3 5 3", r"line 5: .*3 rows.*are more"),
        ("4:-2", "5:-2", r"line 2: .*features.*0.*4.*5"),
        ("4:-2", "-1:-2", r"line 2: .*'-1'"),
        ("4:-2", "0:-2", r"line 2: .*feature .*twice"),
        ("4:-2", "4:nan", r"line 2: .*'nan'"),
        ("4:-2", "4-2", r"line 2: .*features.*'0:1.5 4-2'"),
        ("4:-2", "4:1_0", r"line 2: .*'1_0'"),
        ("4:-2", "4:²", r"line 2: .*plain numbers"),
        ("0,2 ", "0,3 ", r"line 2: .*labels.*0.*2.*3"),
        ("0,2 ", "0,0 ", r"line 2: .*label .*twice"),
        ("0,2 ", "0,x ", r"line 2: .*'x'"),
    ],
)
def test_errors_name_the_file_the_line_and_what_was_expected(put, old, new, message):
    assert old in TEXT
    with pytest.raises(DataError, match=message):
        nl.datasets.load(put(TEXT.replace(old, new, 1)))


def test_a_name_with_a_line_end_is_refused_before_anything_is_written(tmp_path):
    made = nl.datasets.make_local_labels(5, 2, 2, labels_per_sample=1)
    names = np.array(["a\nb", "c"])
    data = nl.datasets.Dataset(made.X, made.Y, np.array(["ok", "c"]), names)
    with pytest.raises(ValueError, match=r"name 'a\\nb'"):
        nl.datasets.save(data, tmp_path / "toy.txt")
    assert list(tmp_path.iterdir()) == []
