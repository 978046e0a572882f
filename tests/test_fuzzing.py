"""Random damage to files: a correct result or a clean error, in bounded time and memory.

Numbers of inputs: in `make test`, hypothesis drives 20 mutations per target, which
shrink on failure, and a seeded generator 150 more. In `make test-all`, hypothesis drives 500,
the generator 100,000 per target with the same mutators, since hypothesis would need an hour for
these; and atheris, guided by coverage, as many again (`fuzz_atheris.py`).
"""

import gzip
import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from fuzzing.answers import assert_survives
from fuzzing.mutations import packed_model, unpacked_model
from fuzzing.targets import targets
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.datasets import Dataset
from nearlabel.datasets.formats import FORMATS

NAMES = (
    *("arff", "csv", "json", "jsonl", "model", "npz", "parquet", "pipeline", "sparse", "xml"),
    *("tag_lines", "tags", "xmp"),
)
QUICK = tuple(name for name in NAMES if name != "parquet")  # each of these takes a process
TEXTS = ("arff", "csv", "json", "jsonl", "sparse", "xml")


def test_every_format_is_a_target():
    assert {*FORMATS} - {"tsv"} < {*NAMES} == {*targets()}  # tabs are read like commas


@pytest.mark.parametrize("name", NAMES)
def test_every_seed_is_read(name):
    target = targets()[name]
    assert all(target.run(seed) for seed in target.seeds)


@pytest.mark.parametrize("name", QUICK)
@given(random=st.randoms(use_true_random=False))
def test_mutations_that_shrink(name, random):
    target = targets()[name]
    target.run(target.mutation(random))


@pytest.mark.parametrize("name", NAMES)
def test_mutations(name):
    assert_balanced(targets()[name].campaign(150, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_100_000_mutations(name, capsys):
    counts = targets()[name].campaign(100_000)
    with capsys.disabled():
        print(f"\n{name}: {counts[True]:,} read, {counts[False]:,} refused")  # noqa: T201
    assert counts.total() == round(100_000 * targets()[name].share)
    assert_balanced(counts)


def assert_balanced(counts):
    """Some inputs are read and some refused: mutations are neither too strong nor too weak."""
    assert min(counts[True], counts[False]) > counts.total() / 50


ARFF = "@relation r\n@attribute a numeric\n@attribute one {0,1}\n@attribute 'l two' {0,1}\n@data\n"
BLANKS = " " * 3000
DEEP = "[" * 985 + "]" * 985
HEADER = '{"nearlabel": 1, "features": 1, "labels": 2147483647}\n{"features": [1], "labels": ["0"]}'
XML = '<?xml version="1.0" encoding="{}"?><labels><label name="é"/></labels>'
HOSTILE = {
    "blanks in a value": ("arff", f"{ARFF}1,{BLANKS}x'\n"),
    "blanks in a pair": ("arff", f"{ARFF}{{0 {BLANKS}x'}}\n"),
    "blanks in a declaration": ("arff", f"@relation r\n@attribute a {{{BLANKS}x'}}\n"),
    "commas": ("arff", ARFF + "," * 4000),
    "many values": (
        "arff",
        ARFF.replace("{0,1}", f"{{{','.join(map(str, range(900)))}}}") + "1,0,0",
    ),
    "split of many rows": (
        "arff",
        ARFF.replace("@data", "% split: train 999999999999\n@data") + "1,0,0",
    ),
    "labels by the billion": ("jsonl", HEADER),
    "deep JSON": ("jsonl", f'{{"tags": "a", "x": {DEEP}}}'),
    "deep name": ("jsonl", f'{{"id": {DEEP}, "x": 1, "tags": "a"}}'),
    "deep features": ("jsonl", f'{{"features": [{DEEP}], "tags": "a"}}'),
    "deeper JSON": ("jsonl", f'{{"x": {"[" * 100_000}'),
    "half a character": ("jsonl", '{"features": {"\\ud800": 1}, "labels": ["x"]}'),
    "a zero in a name": ("jsonl", '{"features": {"a\\u0000": 1}, "labels": ["x"]}'),
    "a long number": ("sparse", f"1 9 9\n{'9' * 4000} 0:1\n"),
    "a long word": ("sparse", f"1 9 9\n0 0:{'x' * 4000}\n"),
    "columns by the billion": ("sparse", "1 2147483647 2147483647\n7 2147483646:1\n"),
    "a tab in a message": ("csv", 'a\tb\ttags\n1\t"2"3\tx\n'),
    "many quotes": ("csv", 'a,tags\n1,"' + '""' * 2000),
    "a long column": ("csv", "x" * 4000 + "\n1\n"),
    "a foreign encoding": ("xml", XML.format("foo")),
    "a wide encoding": ("xml", XML.format("gbk")),
    "another encoding": ("xml", XML.format("iso-8859-1")),
    "an encoding that is none": ("xml", XML.format("idna")),
    "a file of the system": (
        "xml",
        '<!DOCTYPE labels [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        '<labels><label name="a"/>&x;</labels>',
    ),
    "a billion laughs": (
        "xml",
        "<!DOCTYPE l [<!ENTITY a0 'ha'>"
        + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10))
        + "]><labels><label name='&a9;'/></labels>",
    ),
    "100,000 levels": ("xml", "<labels>" * 100_000),
    "a huge attribute": (
        "xml",
        f"<labels><label name='{'x' * 10**6}' other='{'y' * 10**6}'/></labels>",
    ),
    "a huge tag": ("xml", f"<labels><{'x' * 10**6}/></labels>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name):
    target, text = HOSTILE[name]
    targets()[target].run(text.encode())


def test_colons_are_between_a_column_and_its_value():
    assert not targets()["sparse"].run(b"1 6 2\n0 2 3 4 5::\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("line", [b"x" * 2**27, b"%" + b" " * 2**20 + b"\n", b"\n", b"," * 2**16])
def test_gzip_bombs(name, line):
    target = targets()[name]
    repeats = 2**27 // len(line) if len(line) > 1 else 2**22
    bomb = gzip.compress(target.seeds[0] + line * repeats, mtime=0)
    assert len(bomb) < 2**18
    target.run(bomb, seconds=60)


@pytest.mark.parametrize("name", TEXTS)
def test_cut_gzip(name):
    target = targets()[name]
    whole = target.seeds[4]
    assert not any(target.run(whole[:size]) for size in range(1, len(whole)))


NAMED = [
    "\x01",
    "a\rb",
    "a\nb",
    "a;b;c;d",
    "a\tb\tc",
    "\ud800",
    "a\0b",
    " ",
    "",
    '"',
    "'",
    "\\",
    "x=y",
    *("id", "tags", "split", "Labels", "label:x", "feature:y", " z ", " tags;|, "),
]


@pytest.mark.parametrize("form", range(len(FORMATS)))
@pytest.mark.parametrize("name", NAMED)
def test_names_survive_every_form(name, form, tmp_path):
    names = np.array([name, "other"])
    Y = sparse.csr_array(np.eye(2, dtype=np.int8))
    assert_survives(Dataset(np.eye(2), Y, names, names, None, names), tmp_path, form)


@pytest.mark.parametrize("form", range(len(FORMATS)))
@pytest.mark.parametrize("dtype", ["?", "f2", "f4", "g", ">f8", "i8", "u1"])
def test_types_survive_every_form(dtype, form, tmp_path):
    Y = sparse.csr_array(np.eye(2, dtype=np.int8))
    assert_survives(Dataset(np.eye(2).astype(dtype), Y), tmp_path, form)


def changed(seed, change):
    """A model file whose header and arrays were changed, with checksums that fit."""
    header, arrays = unpacked_model(targets()["model"].seeds[seed])
    change(header["tree"], arrays)
    header["arrays"] = [
        {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
        for array in arrays
    ]
    return packed_model(header, arrays)


def ones_of(value):
    def change(tree, arrays):
        stored = arrays[tree["labels"]["indices"]["array"]]
        tree["labels"]["data"] = {"array": len(arrays)}
        arrays.append(np.full(len(stored), value, np.int8))

    return change


MODELS = {
    "labels by the billion": (0, lambda tree, _: tree["labels"].update(shape=[6, 2**33])),
    "labels by the hundred million": (0, lambda tree, _: tree["labels"].update(shape=[6, 10**8])),
    "a long class": (0, lambda tree, _: tree.update({"class": "x\n" * 2000})),
    "a line end in a parameter": (0, lambda tree, _: tree["parameters"].update({"a\nb": 1})),
    "labels of 5": (0, ones_of(5)),
    "labels of -1": (0, ones_of(-1)),
    "labels of 0": (0, ones_of(0)),
    "a foreign metric": (0, lambda tree, _: tree.update(metric="foo")),
    "a foreign search": (0, lambda tree, _: tree.update(search="foo")),
    "an object as names": (0, lambda tree, _: tree.update(label_names={"a": 1, "b": 2})),
    "long classes": (2, lambda tree, _: tree.update(classes=["U100000000", ["a", "b"]])),
    "equal classes": (2, lambda tree, _: tree.update(classes=["U", ["a", "a"]])),
    "classes of an old type": (2, lambda tree, _: tree.update(classes=["a", ["a", "b"]])),
    "classes out of range": (2, lambda tree, _: tree.update(classes=["float16", [0.0, 1e9]])),
    "classes in no order": (2, lambda tree, _: tree.update(classes=["U", ["b", "a"]])),
    "classes of two types": (2, lambda tree, _: tree.update(classes=["int64", [0, 1.0]])),
    "no steps": (5, lambda tree, _: tree.update(steps=[])),
    "steps in a wrong order": (5, lambda tree, _: tree["steps"].reverse()),
    "a scaler without a scale": (5, lambda tree, _: tree["steps"][0][1].update(scale_=None)),
}


@pytest.mark.parametrize("name", MODELS)
def test_hostile_models(name):
    assert not targets()["model"].run(changed(*MODELS[name]))


def test_a_deep_tree():
    """Python 3.13 allows deeper recursion than 3.11: one reads it, the other refuses it."""
    deep = json.loads("[" * 700 + "]" * 700)
    targets()["model"].run(changed(0, lambda tree, _: tree.update(more=deep)))


@pytest.mark.parametrize("shape", [[1] * 70, [0, 2**62]])
def test_shapes_that_numpy_does_not_support(shape):
    header, arrays = unpacked_model(targets()["model"].seeds[0])
    content = np.zeros(0 if 0 in shape else 1)
    digest = hashlib.sha256(content.tobytes()).hexdigest()
    header["arrays"].append({"dtype": "<f8", "shape": shape, "sha256": digest})
    assert not targets()["model"].run(packed_model(header, [*arrays, content]))


# scipy's own check lets both pass: where the last end is 0, and where a difference wraps.
ENDS = ([0, 10**8, 0, 0, 0, 0, 0], [0, 2**31 - 1, -2, 2, 3, 4, 7])


@pytest.mark.parametrize("ends", ENDS)
def test_ends_of_rows_that_go_back_in_a_model(ends):
    def change(tree, arrays):
        arrays[tree["labels"]["indptr"]["array"]] = np.array(ends, np.int32)
        arrays[tree["labels"]["indices"]["array"]] = np.arange(ends[-1], dtype=np.int32) % 2

    assert not targets()["model"].run(changed(0, change))


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("part", ["X", "Y"])
def test_ends_of_rows_that_go_back_in_an_archive(part, ends):
    with np.load(io.BytesIO(targets()["npz"].seeds[1])) as stored:
        parts = dict(stored)
    parts[f"{part}_indptr"] = np.array(ends, np.int32)
    parts[f"{part}_indices"] = np.arange(ends[-1], dtype=np.int32) % 2
    parts["X_data"] = np.ones(len(parts["X_indices"]))
    content = io.BytesIO()
    np.savez(content, **parts)
    assert not targets()["npz"].run(content.getvalue())


NPY = {
    "a huge shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 1)}",
    "a large shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (50000000, 1)}",
    "half a header": "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1)",
    "a header of Python 2": "{'descr': '<f8', 'fortran_order': False, 'shape': (6L, 2L)}",
    "minus signs": "-" * 9000 + "1",
    "brackets": "(" * 5000,
}


@pytest.mark.parametrize("name", NPY)
def test_hostile_archives(name):
    header = NPY[name].encode() + b"\n"
    array = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(96)
    content = io.BytesIO(targets()["npz"].seeds[0])
    result = io.BytesIO()
    with zipfile.ZipFile(content) as before, zipfile.ZipFile(result, "w") as after:
        for member in before.namelist():
            after.writestr(member, array if member == "X.npy" else before.read(member))
    targets()["npz"].run(result.getvalue())
