"""The public data sets of the data folder: their sizes, and the files that they were made from."""

from __future__ import annotations

import os

import numpy as np
import pytest

import nearlabel as nl

# name: instances, features, labels, cardinality, density, label sets, train, test, other, no label
SIZES = {
    "bibtex": (7395, 1836, 159, 2.402, 0.0151, 2856, 4880, 2515, 0, 0),
    "birds": (645, 260, 19, 1.014, 0.0534, 133, 322, 323, 0, 294),
    "cal500": (502, 68, 174, 26.044, 0.1497, 502, None, None, 0, 0),
    "corel16k001": (13766, 500, 153, 2.859, 0.0187, 4803, None, None, 0, 0),
    "corel16k002": (13761, 500, 164, 2.882, 0.0176, 4868, 5241, 1783, 6737, 0),
    "corel16k003": (13760, 500, 154, 2.829, 0.0184, 4812, 5289, 1717, 6754, 0),
    "corel5k": (5000, 499, 374, 3.522, 0.0094, 3175, 4500, 500, 0, 0),
    "delicious": (16105, 500, 983, 19.020, 0.0193, 15806, 12920, 3185, 0, 14),
    "emotions": (593, 72, 6, 1.868, 0.3114, 27, 391, 202, 0, 0),
    "enron": (1702, 1001, 53, 3.378, 0.0637, 753, 1123, 579, 0, 0),
    "flags": (194, 19, 7, 3.392, 0.4845, 54, 129, 65, 0, 0),
    "genbase": (662, 1185, 27, 1.252, 0.0464, 32, 463, 199, 0, 0),
    "image": (2000, 294, 5, 1.236, 0.2472, 20, None, None, 0, 0),
    "image135": (2000, 135, 5, 1.236, 0.2472, 20, None, None, 0, 0),
    "mediamill_sample": (4387, 120, 101, 4.364, 0.0432, 1401, None, None, 0, 145),
    "medical": (978, 1449, 45, 1.245, 0.0277, 94, 333, 645, 0, 0),
    "ohsumed": (13929, 1002, 23, 1.663, 0.0723, 1147, 6965, 6964, 0, 0),
    "reuters": (7119, 243, 7, 1.241, 0.1774, 25, None, None, 0, 0),
    "scene": (2407, 294, 6, 1.074, 0.1790, 15, 1211, 1196, 0, 0),
    "slashdot": (3782, 1079, 22, 1.181, 0.0537, 156, 1891, 1891, 0, 0),
    "tmc2007_500": (28596, 500, 22, 2.158, 0.0981, 1341, 21519, 7077, 0, 0),
    "yahoo_arts": (5000, 462, 26, 1.636, 0.0629, 462, 2000, 3000, 0, 0),
    "yahoo_business": (5000, 438, 30, 1.588, 0.0529, 161, 2000, 3000, 0, 0),
    "yahoo_computers": (5000, 681, 33, 1.508, 0.0457, 253, 2000, 3000, 0, 0),
    "yahoo_education": (5000, 550, 33, 1.461, 0.0443, 308, 2000, 3000, 0, 0),
    "yahoo_entertainment": (5000, 640, 21, 1.420, 0.0676, 232, 2000, 3000, 0, 0),
    "yahoo_health": (5000, 612, 32, 1.662, 0.0519, 257, 2000, 3000, 0, 0),
    "yahoo_recreation": (5000, 606, 22, 1.423, 0.0647, 322, 2000, 3000, 0, 0),
    "yahoo_reference": (5000, 793, 33, 1.169, 0.0354, 217, 2000, 3000, 0, 0),
    "yahoo_science": (5000, 743, 40, 1.451, 0.0363, 398, 2000, 3000, 0, 0),
    "yahoo_social": (5000, 1047, 39, 1.283, 0.0329, 226, 2000, 3000, 0, 0),
    "yahoo_society": (5000, 636, 27, 1.692, 0.0627, 582, 2000, 3000, 0, 0),
    "yeast": (2417, 103, 14, 4.237, 0.3026, 198, 1500, 917, 0, 0),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(load, name):
    told = nl.datasets.describe(load(name))
    assert (
        told.instances,
        told.features,
        told.labels,
        round(told.cardinality, 3),
        round(told.density, 4),
        told.distinct_label_sets,
        told.train,
        told.test,
        told.other,
        told.without_labels,
    ) == SIZES[name]


def test_all_are_available(load):
    load("yeast")
    assert set(SIZES) <= set(nl.datasets.available())


@pytest.fixture
def original(load):
    """The folder of the files as Mulan distributes them, gzipped."""
    load("yeast")
    folders = [folder / "original" for folder in nl.datasets.data_folders()]
    found = next((folder for folder in folders if folder.is_dir()), None)
    if found is None:
        assert not os.environ.get("NEARLABEL_REQUIRE_DATA")
        pytest.skip("the data folder has no folder `original`")
    return found


@pytest.mark.parametrize("name", ["emotions", "scene", "yeast"])
def test_the_original_files_give_the_same(load, original, name):
    ours, theirs = load(name), nl.datasets.load(original / name)
    np.testing.assert_array_equal(theirs.X, ours.X)
    assert (theirs.Y != ours.Y).nnz == 0
    assert theirs.label_names.tolist() == ours.label_names.tolist()
    assert theirs.feature_names.tolist() == ours.feature_names.tolist()
    np.testing.assert_array_equal(theirs.train, ours.train)


def test_labels_in_another_order_in_the_xml_file(load, original):
    from nearlabel.datasets.arff import read_labels
    from nearlabel.datasets.text_lines import TextFile

    listed = read_labels(TextFile(original / "yeast.xml.gz"))
    columns = load("yeast").label_names.tolist()
    assert sorted(listed) == sorted(columns)
    assert listed != columns


def test_the_single_file_holds_both_parts(load, original):
    whole = nl.datasets.load(original / "emotions.arff.gz")
    assert whole.train is None
    both = load("emotions")

    def rows(data):
        return sorted(map(tuple, np.hstack([data.X, data.Y.toarray()]).tolist()))

    assert rows(whole) == rows(both)
