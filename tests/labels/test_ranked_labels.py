import numpy as np
import pytest
from notebook_cells import Cells

import nearlabel as nl
from nearlabel.labels.ranked_labels import RankedLabels

SCORES = np.array([[0.25, 0.5, 0.125], [1.0, -0.0001, 0.0]])


def test_rows_of_names_and_scores():
    ranked = nl.LabelScores.from_dense(SCORES, label_names=["sea", "hill", "road"]).rank(2)
    rows = [[("hill", 0.5), ("sea", 0.25)], [("sea", 1.0), ("road", 0.0)]]
    assert list(ranked) == rows
    assert len(ranked) == 2
    assert [ranked[0], ranked[-1], ranked[np.int64(1)]] == [rows[0], rows[1], rows[1]]
    assert ranked[1:] == rows[1:]
    assert [type(part) for part in ranked[0][0]] == [str, float]
    for row in (2, -3):
        with pytest.raises(IndexError, match=str(row)):
            ranked[row]
    with pytest.raises(TypeError):
        ranked["hill"]
    unnamed = nl.LabelScores.from_dense(SCORES).rank(2)
    assert list(unnamed) == [[(1, 0.5), (0, 0.25)], [(0, 1.0), (2, 0.0)]]
    assert [type(part) for part in unnamed[0][0]] == [int, float]


def test_a_method_ranks_in_rows(f6):
    X, Y, t = f6
    model = nl.MallowskNN(n_neighbors=3).fit(X, Y, label_names=list("abcd"))
    ranked = model.rank(t)
    assert [name for name, _ in ranked[0]] == ranked.names[0].tolist()
    calibrated = model.calibrated_ranking(t)
    assert list(calibrated) == list(ranked)
    assert repr(calibrated) == repr(ranked).replace("RankedLabels", "CalibratedRanking")


def test_text_of_few_and_of_many_rows():
    ranked = nl.LabelScores.from_dense(SCORES, label_names=["sea", "hill", "road"]).rank()
    assert repr(ranked).splitlines() == [
        "RankedLabels(n=2, top=3)",
        "0  hill 0.500, sea 0.250, road 0.125",
        "1  sea 1.000, road 0.000, hill 0.000",
    ]
    many = nl.LabelScores.from_dense(np.zeros((1000, 500))).rank()
    lines = str(many).splitlines()
    assert len(lines) < 12
    assert lines[1].startswith("0  0 0.000, 1 0.000, ")
    assert lines[1].endswith(" 480 more")
    assert lines[-1] == "… 994 more rows"
    empty = RankedLabels(np.empty((0, 3), np.int32), np.empty((0, 3)), None)
    assert repr(empty) == "RankedLabels(n=0, top=3)"
    assert list(empty) == []


def test_html_escapes_names_and_stays_short():
    evil = "<script>alert('&')</script>"
    ranked = nl.LabelScores.from_dense(SCORES, label_names=[evil, 'a"b', "road"]).rank()
    shown = Cells(ranked._repr_html_())
    assert shown.rows[1:] == [
        ["0", f'a"b 0.500 {evil} 0.250 road 0.125'],
        ["1", f'{evil} 1.000 road 0.000 a"b 0.000'],
    ]
    assert shown.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "span"}
    many = nl.LabelScores.from_dense(np.zeros((1000, 500))).rank()._repr_html_()
    assert len(Cells(many).rows) == 41
    assert "… 960 more rows" in Cells(many).text
    assert "… 480 more" in Cells(many).rows[1][1]
