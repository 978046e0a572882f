"""Small collections of every kind, and clients of the service that serves them."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack

import numpy as np
import pytest
from collection_lives import picture

pytest.importorskip("fastapi")
pytest.importorskip("python_multipart")
pytest.importorskip("prometheus_client")
pytest.importorskip("PIL")

with warnings.catch_warnings():  # Starlette recommends httpx2, which does the same
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from nearlabel.app.served import Served
from nearlabel.app.service import create_app
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection, NewItem
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.collection.records import vector_content

TEXTS = [
    "waves break on the beach, salt water and sand",
    "sand and salt water, the beach at noon",
    "snow covers the mountain, ice on the rocks",
    "the mountain in winter, rocks and snow",
    "a train leaves the station at night",
    "the night train waits at the station",
]


class Client(TestClient):
    """A test client, with the collection and the application it talks to."""

    @property
    def collection(self):
        return self.app.state.served.collection

    @property
    def uploads(self):
        return self.app.state.served.settings.uploads

    def code(self, method, address, **request):
        """The status and the code of an error response; checks its form."""
        answer = self.request(method, address, **request)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json().keys() == {"error"}
        assert answer.json()["error"].keys() == {"code", "message"}
        assert 10 < len(answer.json()["error"]["message"]) < 500
        return answer.status_code, answer.json()["error"]["code"]


def made_vectors(top):
    """Forty items on two sides: those with odd numbers are light, the others dark."""
    random = np.random.default_rng(0)
    side = np.resize([[3, 0, 0, 0], [0, 3, 0, 0]], (40, 4))
    rows = (side + random.normal(size=(40, 4))).astype(np.float32)
    collection = Collection.create(top / "vectors.nearlabel", kind="vectors")
    collection.add(
        [NewItem(vector_content(f"v{n}", row), row, name=f"v{n}") for n, row in enumerate(rows, 1)]
    )
    collection.tag(range(1, 30, 2), "light")
    collection.tag(range(2, 30, 2), ["dark", "Places|Rome"])
    collection.reject([1, 3], "dark")
    return collection


def made_files(top, kind, contents, **how):
    """A collection of files in a folder."""
    (top / kind).mkdir()
    for name, content in contents.items():
        (top / kind / name).write_bytes(content)
    collection = Collection.create(top / f"{kind}.nearlabel", kind=kind, **how)
    run_index(collection, plan_index(collection, top / kind))
    return collection


def made_pictures(top):
    """Ten pictures of noise; the first six have tags."""
    contents = {f"{seed}.png": picture(seed) for seed in range(10)}
    collection = made_files(top, "pictures", contents, features="moments")
    collection.tag([1, 2, 3], "sea")
    collection.tag([4, 5, 6], ["sky", "sea"])
    return collection


def made_texts(top):
    """Six texts about three topics; four of them have tags."""
    contents = {f"{number}.txt": text.encode() for number, text in enumerate(TEXTS)}
    collection = made_files(top, "texts", contents)
    collection.tag([1, 2], "sea")
    collection.tag([3, 4], "winter")
    return collection


def made_nothing(top):
    """An empty collection of vectors."""
    return Collection.create(top / "nothing.nearlabel", kind="vectors")


MADE = {
    "vectors": made_vectors,
    "pictures": made_pictures,
    "texts": made_texts,
    "nothing": made_nothing,
}


@pytest.fixture(scope="module")
def module_serving(tmp_path_factory):
    """Make clients of new collections; all are closed after the tests of a file."""
    with ExitStack() as stack:
        yield lambda kind, **how: opened(stack, tmp_path_factory.mktemp(kind), kind, **how)


@pytest.fixture(scope="session")
def any_client(tmp_path_factory):
    """A client of an application, shared because creating one is slow."""
    with ExitStack() as stack:
        yield opened(stack, tmp_path_factory.mktemp("nothing"), "nothing")


@pytest.fixture
def serving(any_client, tmp_path):
    """Let an application serve a new collection until the end of the test."""
    with ExitStack() as stack:

        def served(kind):
            collection = stack.enter_context(MADE[kind](tmp_path))
            served = Served(collection, ServiceSettings(tmp_path / "uploads"))
            served.warm_up()
            any_client.app.state.served = served
            return any_client

        yield served


def opened(stack, top, kind, *, readonly=False, **settings):
    collection = MADE[kind](top)
    if readonly:
        collection.close()
        collection = Collection(collection.path, readonly=True)
    stack.enter_context(collection)
    app = create_app(collection, ServiceSettings(top / "uploads", **settings))
    client = Client(app, base_url="http://127.0.0.1", follow_redirects=False)
    stack.enter_context(client)
    for _ in range(3000):
        if app.state.served.is_ready:
            return client
        time.sleep(0.01)
    raise AssertionError("the service does not get ready")


@pytest.fixture
def vectors(serving):
    return serving("vectors")


@pytest.fixture
def pictures(serving):
    return serving("pictures")


@pytest.fixture
def texts(serving):
    return serving("texts")
