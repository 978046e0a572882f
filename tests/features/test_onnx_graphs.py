"""ONNX files that we write, compared with NumPy, and files of others that we check."""

import random
from contextlib import suppress

import numpy as np
import pytest
from fuzzing.mutations import mutated_bytes
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.features.networks.onnx_graphs import OnnxGraph, refuse_other_files
from nearlabel.features.networks.protobuf import field, fields, float_field
from nearlabel.features.networks.sessions import Session
from nearlabel.features.networks.stored_networks import NetworkError


def scaled(factor=3.0):
    """Twice pooled pictures of three colors, times a factor, as an ONNX file."""
    graph = OnnxGraph("scaled")
    graph.weight("factor", np.array([[[factor]], [[2.0]], [[-1.0]]]))
    graph.node("Mul", ["x", "factor"], "y")
    graph.node("GlobalAveragePool", ["y"], "pooled")
    graph.node("Flatten", ["pooled"], "features", axis=1)
    return graph.model([3, 4, 5], "features", 3)


def test_a_graph_is_computed():
    pytest.importorskip("onnxruntime")
    session = Session(scaled(), "scaled")
    assert session.inputs == {"x": ["N", 3, 4, 5]}
    assert session.outputs == {"features": ["N", 3]}
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("f4")
    expected = x.mean((2, 3)) * [3, 2, -1]
    np.testing.assert_allclose(session.run("features", {"x": x}), expected, atol=1e-6)


def test_errors_of_onnxruntime_are_one_sentence():
    pytest.importorskip("onnxruntime")
    for content in (b"", b"no model", scaled()[:-40], OnnxGraph("empty").model([3], "y", 1)):
        with pytest.raises(NetworkError, match="own.onnx cannot be used") as caught:
            Session(content, "own.onnx")
        assert "\n" not in str(caught.value)
    with pytest.raises(NetworkError, match="own.onnx fails"):
        Session(scaled(), "own.onnx").run("features", {"x": np.zeros((1, 3, 4, 6), "f4")})


OUTSIDE = field(1, 3) + field(2, 1) + field(8, "w") + field(14, 1)
OUTSIDE += field(13, field(1, "location") + field(2, "../../etc/passwd"))
NODE = field(4, "Constant")


@pytest.mark.parametrize(
    "graph",
    [
        field(5, OUTSIDE),
        field(15, field(1, OUTSIDE)),
        field(1, NODE + field(5, field(5, OUTSIDE))),
        field(1, NODE + field(5, field(10, OUTSIDE))),
        field(1, NODE + field(5, field(22, field(2, OUTSIDE)))),
        field(1, NODE + field(5, field(6, field(5, OUTSIDE)))),
        field(1, NODE + field(5, field(11, field(1, NODE + field(5, field(5, OUTSIDE)))))),
    ],
)
def test_weights_in_other_files_are_refused(graph):
    with pytest.raises(ValueError, match="other files"):
        refuse_other_files(field(1, 8) + field(7, graph))


def test_weights_of_functions_in_other_files_are_refused():
    function = field(7, NODE + field(5, field(5, OUTSIDE)))
    with pytest.raises(ValueError, match="other files"):
        refuse_other_files(field(25, function))


def test_graphs_that_are_too_deep_are_refused():
    graph = field(2, "inner")
    for _ in range(2000):
        graph = field(1, field(5, field(6, graph)))
    with pytest.raises(ValueError, match="deep"):
        refuse_other_files(field(7, graph))


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutations_are_checked_or_refused(count):
    source = random.Random(0)
    for _ in range(count):
        with suppress(ValueError):  # any other error is a bug
            refuse_other_files(mutated_bytes(scaled(), b"", source))


VALUES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=200))


@given(st.lists(st.tuples(st.integers(1, 2**20), VALUES)))
def test_fields_round_trip(written):
    message = b"".join(field(number, value) for number, value in written)
    read = [
        (number, value if isinstance(value, int) else bytes(value))
        for number, value in fields(message)
    ]
    assert read == written


def test_floats_round_trip():
    assert list(fields(float_field(2, 0.5))) == [(2, 0.5)]
    assert list(fields(b"\x09" + np.array(0.25).tobytes())) == [(1, 0.25)]


@pytest.mark.parametrize(
    "message", [b"\x08", b"\x0a\x05abc", b"\x0d\x00", b"\x0b", b"\x08" + b"\xff" * 11]
)
def test_messages_that_are_cut_off(message):
    with pytest.raises(ValueError, match="is truncated|is too long"):
        list(fields(message))
