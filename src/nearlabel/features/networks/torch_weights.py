"""Weights in a PyTorch file, read without PyTorch.

Such a file, of `torch.save` before version 1.6, is five pickles (a magic number, a version, sizes
of types, the tensors, the names of their storages) followed by the storages: a length and numbers
each. The unpickler imports nothing: it knows the four names that a dict of tensors needs, and
refuses any other. Sizes are not checked: the catalog has the checksum of the file.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict

import numpy as np

from nearlabel.common.arrays import Array


def torch_weights(content: bytes) -> dict[str, Array]:
    """The arrays of a file by name; ValueError if it has anything else."""
    file = io.BytesIO(content)
    *_, tensors, keys = [_Unpickler(file).load() for _ in range(5)]
    storages = {
        key: (np.dtype(kind), count) for (_, kind, key, _, count, _), *_ in tensors.values()
    }
    contents = {}
    for key in keys:
        dtype, count = storages[key]
        file.read(8)  # the count again
        contents[key] = file.read(count * dtype.itemsize)
    arrays = {}
    for name, ((_, kind, key, *_), offset, shape, strides, *_) in tensors.items():
        size = np.dtype(kind).itemsize
        steps = [step * size for step in strides]
        arrays[name] = np.ndarray(shape, kind, contents[key], offset * size, steps)
    return arrays


class _Unpickler(pickle.Unpickler):
    """Makes a tensor the tuple of its storage, offset, shape and strides."""

    def find_class(self, module: str, name: str) -> object:
        """What a name stands for: nothing is imported."""
        known = {
            "collections.OrderedDict": OrderedDict,
            "torch._utils._rebuild_tensor_v2": lambda *parts: parts,
            "torch.FloatStorage": "<f4",
            "torch.LongStorage": "<i8",
        }
        if f"{module}.{name}" not in known:
            raise ValueError(f"weights do not need {module}.{name}")
        return known[f"{module}.{name}"]

    def persistent_load(self, pid: object) -> object:
        """A storage: the tuple of a word, its type, its key, its device, its size and None."""
        return pid
