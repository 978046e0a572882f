"""After `forget` and `compact`, no byte of a row is left in memory, pickles or files."""

import gc
import pickle
from types import FunctionType, ModuleType

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.common.growing import Grown
from nearlabel.search.approximate import inverted_lists

pytestmark = pytest.mark.filterwarnings("ignore:the training rows were changed:UserWarning")
Q = 90  # labels; the last one is that of the secret row alone
SECRET = np.array(
    [[1234.5678, -8765.4321, 0.1234567, 7654.321, -0.7654321, 321.1234, 5.4321, 9e-7]]
)
NUMBER, NAME = 777_777_777_777, "id of nobody else"
rng = np.random.default_rng(0)
X = rng.normal(size=(105, 8))
Y = np.pad((rng.random((105, 5)) < 0.4).astype(int), ((0, 0), (0, Q - 5)))
ONLY_ITS_OWN = np.eye(1, Q, Q - 1, dtype=int)
NAMES = [f"label {column}" for column in range(Q - 1)] + ["only the secret row had this"]
MODELS = {
    "mlknn": lambda **how: nl.MLkNN(5, **how),
    "lamlknn": lambda **how: nl.LAMLkNN(5, n_clusters=2, random_state=0, **how),
    "dmlknn": lambda **how: nl.DMLkNN(5, **how),
    "brknn": lambda **how: nl.BRkNN(5, **how),
    "positiveknn": lambda **how: nl.PositivekNN(5, random_state=0, **how),
    "thresholds": lambda **how: nl.LabelThresholds(nl.MLkNN(5, **how)),
}


def texts(name):
    return name.encode(), name.encode("utf-32-le")


# The bytes that would reveal the row: each number in 64 and 32 bits, and its ids.
TRACES = [one.astype(kind).tobytes() for one in SECRET[0] for kind in (np.float64, np.float32)]
TRACES += [np.int64(NUMBER).tobytes(), str(NUMBER).encode(), *texts(NAME)]


def found_in(content):
    return [trace for trace in TRACES if trace in content]


def reachable(thing):
    """All objects reachable from an object, except modules and classes."""
    seen, left = {}, [thing]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, ModuleType | type):
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType):
            left += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        elif isinstance(one, np.ndarray):
            left += [one.base, *(one.tolist() if one.dtype == object else ())]
        else:
            left += gc.get_referents(one)
    return seen.values()


def memory(thing):
    """The memory of all arrays and texts of an object, including spare capacity."""
    for one in reachable(thing):
        if isinstance(one, np.ndarray) and one.base is None and one.dtype != object:
            yield one.tobytes(order="A")
        elif isinstance(one, str):
            yield one.encode(errors="replace")
        elif isinstance(one, int) and not isinstance(one, bool):
            yield str(one).encode()
        elif isinstance(one, float):
            yield np.float64(one).tobytes()
        elif isinstance(one, bytes | bytearray):
            yield one
        elif isinstance(one, memoryview) or type(one).__name__ == "mmap":
            yield bytes(one)


def assert_nothing_is_left(model, folder):
    assert not found_in(b"|".join(memory(model)))
    assert not found_in(pickle.dumps(model))
    nl.save(model, folder / "another.model")
    for path in folder.iterdir():  # temporary files, too
        assert not found_in(path.read_bytes()), path.name
    items = model.items_
    assert items.totals[-1] == 0
    indices = items.labels.indices
    while indices.base is not None:
        indices = indices.base
    assert Q - 1 not in indices
    # The label remains as a column without rows: the numbers of the others must not change. A name
    # that would reveal a row is removed by a new fit without it.
    assert model.label_names_.tolist() == NAMES
    assert any(text in pickle.dumps(model) for text in texts(NAMES[-1]))


def with_the_secret(make, form, name, came):
    """A model that had the row, from the beginning or later, and no longer has it."""
    ids = {str: [f"row {i}" for i in range(len(X))], int: [*range(len(X))]}[type(name)]
    first = slice(0, 100)
    if came == "in fit":
        rows = np.vstack([X[:50], SECRET, X[50:100]])
        labels = np.vstack([Y[:50], ONLY_ITS_OWN, Y[50:100]])
        every = [*ids[:50], name, *ids[50:100]]
        model = make.fit(form(rows), labels, ids=every, label_names=NAMES)
    else:
        model = make.fit(form(X[first]), Y[first], ids=ids[first], label_names=NAMES)
        model.partial_fit(form(SECRET), ONLY_ITS_OWN, ids=[name])
    model.partial_fit(form(X[100:103]), Y[100:103], ids=ids[100:103])
    return model


@pytest.mark.parametrize("came", ["in fit", pytest.param("later", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", MODELS)
def test_nothing_of_a_forgotten_row_is_left(kind, came, tmp_path):
    for form, name in ((np.array, NUMBER), (sparse.csr_array, NAME)):
        model = with_the_secret(MODELS[kind](), form, name, came)
        model.retrieve(SECRET, 2)
        model.forget(name)
        assert found_in(pickle.dumps(model))  # where it still is
        assert_nothing_is_left(model.compact(), tmp_path)
        model.rank(X[:3])
        model.partial_fit(
            form(X[103:105]), Y[103:105], ids=["a", "b"] if name == NAME else [-1, -2]
        )
        assert_nothing_is_left(model, tmp_path)


@pytest.mark.parametrize("came", ["in fit", "later"])
def test_lists_keep_nothing(came, tmp_path, monkeypatch):
    monkeypatch.setattr(inverted_lists, "_FEWEST", 64)
    make = nl.MLkNN(5, search=nl.InvertedLists())
    model = with_the_secret(make, np.array, NUMBER, came)
    assert model.search_recall_ is not None
    model.forget(NUMBER)
    assert_nothing_is_left(model.compact(), tmp_path)
    nl.save(model, tmp_path / "model")
    assert_nothing_is_left(nl.load(tmp_path / "model", mmap=True), tmp_path)


@pytest.mark.parametrize(
    ("came", "name", "is_mapped"),
    [("in fit", NUMBER, True), ("later", NUMBER, False), ("later", NAME, True)],
)
def test_a_journal_keeps_nothing(came, name, is_mapped, tmp_path):
    path = tmp_path / "model"
    with_the_secret(nl.MLkNN(5), np.array, name, came).save(path)
    model = nl.load(path, journal=True, mmap=is_mapped)
    model.relabel(name, ONLY_ITS_OWN).forget(name)
    if came == "later":
        model.partial_fit(SECRET, ONLY_ITS_OWN, ids=[name]).forget(name)
    assert found_in(path.read_bytes())  # where it still is
    assert came != "later" or found_in((tmp_path / "model.journal").read_bytes())
    assert_nothing_is_left(model.compact(), tmp_path)
    assert_nothing_is_left(nl.load(path), tmp_path)


def test_a_saved_file_has_no_forgotten_rows(tmp_path):
    """Before `compact` it is in memory, but not in a file that is written then."""
    model = with_the_secret(nl.MLkNN(5), np.array, NUMBER, "later").forget(NUMBER)
    model.save(tmp_path / "model")
    assert not found_in((tmp_path / "model").read_bytes())


def test_room_for_more_rows_is_empty():
    """Spare capacity may be in freed memory, which could contain a forgotten row."""
    grown = Grown(np.full((50, 3), 7.5)).added(np.full((1, 3), 7.5))
    assert not grown.array.base[51:].any()


@pytest.fixture(autouse=True)
def _freed_memory_is_full(monkeypatch):
    """Let `np.empty` return memory that contains the row, as freed memory may."""
    empty = np.empty

    def dirty(shape, dtype=float, **how):
        made = empty(shape, dtype, **how)
        if made.dtype in (np.float64, np.float32):
            made.fill(SECRET[0, 0])
        return made

    monkeypatch.setattr(np, "empty", dirty)
