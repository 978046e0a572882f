"""A work file that is not as it was written is refused with its name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.distributed.block_graphs import read_graph
from nearlabel.distributed.growing_lists import GrowingLists, finish
from nearlabel.distributed.label_files import LabelFile, _mapped_labels
from nearlabel.distributed.list_blocks import listed_rows, lists_folder
from nearlabel.distributed.list_searches import search_lists, take_block
from nearlabel.distributed.row_files import mapped_file, write_rows
from nearlabel.distributed.vector_blocks import WRITTEN, blocks_in, write_block
from nearlabel.distributed.workspaces import working

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.random((400, 3))


def assert_refused(path, read, flips=40):
    """Whatever bit is flipped, reading names the file."""
    whole = path.read_bytes()
    read()
    for bit in RANDOM.integers(8 * len(whole), size=flips):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(FileError, match=re.escape(str(path))):
            read()
    path.write_bytes(whole[:-1])
    with pytest.raises(FileError, match=re.escape(str(path))):
        read()
    path.write_bytes(whole)


def test_blocks_of_vectors_and_of_a_graph(tmp_path):
    path = write_block(tmp_path / f"0{WRITTEN}", ROWS)
    assert_refused(path, lambda: blocks_in([path], "X").read())
    graph = tmp_path / "0.graph"
    nl.neighbor_graph(ROWS, 4).save(graph)
    assert_refused(graph, lambda: read_graph(str(graph)))


def test_labels(tmp_path):
    Y = sparse.csr_array((RANDOM.random((40, 5)) > 0.5).astype(int))
    labels = LabelFile.written(tmp_path, Y)

    def read():
        _mapped_labels.cache_clear()
        labels.of(np.arange(40))

    assert_refused(labels.path, read)


def test_all_rows_in_one_file(client, tmp_path):
    blocks = blocks_in([write_block(tmp_path / f"0{WRITTEN}", ROWS)], "X")
    order = tmp_path / "lists.tree"
    write_tree(order, {"order": RANDOM.permutation(400)})
    write_rows(client, blocks, np.float32, tmp_path, order)
    expected = ROWS[read_stored(order).tree["order"]].astype(np.float32)
    np.testing.assert_array_equal(mapped_file(tmp_path)[:], expected)
    assert_refused(tmp_path / "rows", lambda: mapped_file(tmp_path)[:])
    assert_refused(tmp_path / "rows.tree", lambda: mapped_file(tmp_path)[:])


def test_what_is_searched_by_lists(client, tmp_path):
    with working(client, tmp_path) as place:
        blocks = place.vectors(ROWS.astype(np.float32))
        folder = lists_folder(place, blocks, "euclidean", nl.InvertedLists())
    probes = nl.search.approximate.probes.Probes.fixed(9)
    cuts, none = np.array([0, 150, 400]), np.empty(0, int)
    last = len(listed_rows(folder, "euclidean").lists)
    how = folder, "euclidean", tmp_path, 5, probes, cuts, none
    parts = [search_lists(*how, a, b)[0] for a, b in ((0, 9), (9, last))]
    first = tmp_path / "first.graph"
    blocks = [*zip(*parts, strict=True)]
    assert_refused(parts[0][0].path, lambda: [take_block(own, 5, 400, first) for own in blocks])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", -1, "row 7 of the graph has an index outside 0 to 399"),
        ("rows", 400, "row 7 of the graph has an index outside 0 to 399"),
        ("distances", np.nan, "row 7 of the graph has a distance that is negative or not finite"),
        ("distances", -1.0, "row 7 of the graph has a distance that is negative or not finite"),
    ],
)
def test_wrong_numbers_with_right_checksums(tmp_path, name, value, message):
    graph, path = nl.neighbor_graph(ROWS, 4), tmp_path / "lists-000000"
    lists = GrowingLists(np.ones(1, bool), graph.indices.copy(), graph.distances.copy())
    getattr(lists, name)[7, 0] = value
    lists.write(path)
    message = rf"{re.escape(str(path))} is damaged: {message}"
    with pytest.raises(FileError, match=message):
        finish(path, 400, tmp_path / "0.graph")
    tree = {"class": "NeighborGraph", "indices": lists.rows, "distances": lists.distances}
    write_tree(path, {**tree, "n_base": 400})
    with pytest.raises(FileError, match=message):
        read_graph(str(path))


def test_a_run_that_meets_a_damaged_file_names_it(client, folder_of, tmp_path):
    damaged = []

    def damage(*_):
        for path in (tmp_path / "work").rglob("lists-*"):
            if not damaged:
                content = bytearray(path.read_bytes())
                content[-3] ^= 16
                path.write_bytes(content)
                damaged.append(path)

    rows, work = folder_of(ROWS, (100, 200, 300)), tmp_path / "work"
    with pytest.raises(FileError, match=r"lists-\d+ is altered"):
        nl.distributed.neighbor_graph(rows, 3, client, folder=work, progress=damage)
    damaged[0].unlink()
    graph = nl.distributed.neighbor_graph(rows, 3, client, folder=work)
    lazy = graph.indices
    content = bytearray((path := tmp_path / graph.files[1]).read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for read in (graph.load, lazy.compute):
        with pytest.raises(FileError, match="000001.graph is altered"):
            read()
