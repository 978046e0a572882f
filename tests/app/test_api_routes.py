"""The interface for programs: its responses agree with the collection."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import sys
from unittest import mock

import numpy as np
import pytest
from collection_lives import picture

import nearlabel
from nearlabel.collection import NewItem
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.collection.item_features import item_features
from nearlabel.collection.records import vector_content

NEAR_LIGHT = [2.5, 0.5, 0.1, -0.3]
NEW_TEXT = "rocks on the mountain"


@pytest.fixture(scope="module")
def reading(module_serving):
    """Clients of collections that no test changes."""
    return {kind: module_serving(kind) for kind in ("vectors", "pictures", "texts")}


def told_suggestions(client, found):
    """The suggestions of a collection in the form of the interface."""
    return [
        (one.tag, one.probability, [(by.id, by.distance, by.part) for by in one.voters])
        for one in found
    ]


def given_suggestions(answer):
    return [
        (
            one["tag"],
            one["probability"],
            [(v["id"], v["distance"], v["part"]) for v in one["voters"]],
        )
        for one in answer["suggestions"]
    ]


def pairs(items):
    return [(one["id"], one["distance"]) for one in items]


def groups(found):
    return [(one["tag"], one["probability"], pairs(one["items"])) for one in found["groups"]]


def vector_of(client, content):
    """The vector of a new file."""
    settings = client.collection.settings
    return item_features(settings.kind, settings.features)([content])


def asked(client, content=None, **request):
    """The three responses to one query."""
    if content is not None:
        request = {"content": content, "headers": {"content-type": "image/png"}}
    found = [client.post(f"/api/{what}", **request) for what in ("tag", "retrieve", "similar")]
    assert [answer.status_code for answer in found] == [200, 200, 200]
    return [answer.json() for answer in found]


def assert_answers(client, found, question, ids=None):
    suggested, retrieved, alike = found
    collection = client.collection
    assert given_suggestions(suggested) == told_suggestions(client, collection.suggest(question))
    assert groups(retrieved) == [tuple(group) for group in collection.retrieve(question)]
    assert pairs(alike["items"]) == collection.similar(question)
    assert {answer["id"] for answer in found} == {ids}
    assert alike["items"]
    assert suggested["suggestions"]


# The service.


def test_health_reports_the_version_and_readiness(reading):
    answer = reading["vectors"].get("/api/health")
    assert answer.json() == {"status": "ok", "version": nearlabel.__version__}


def test_health_reports_that_the_model_is_still_loading(vectors):
    vectors.app.state.served.is_ready = False
    assert vectors.get("/api/health").json()["status"] == "starting"


@pytest.mark.parametrize(
    ("kind", "features", "width"),
    [("vectors", "given", 4), ("pictures", "moments", 294), ("texts", "words", 2**20)],
)
def test_settings_describe_the_collection(reading, kind, features, width):
    client = reading[kind]
    counts = client.collection.counts()
    assert client.get("/api/settings").json() == {
        "kind": kind,
        "features": features,
        "method": "MLkNN",
        "n_neighbors": 10,
        "metric": "cosine",
        "width": width,
        **{name: counts[name] for name in ("items", "tagged", "untagged", "missing", "tags")},
    }


def test_a_different_method_gives_different_answers(vectors):
    before = asked(vectors, json={"id": 31})
    for method in ("BRkNN", "MallowskNN", "MLCWkNN", "MLkNN"):
        answer = vectors.put("/api/settings", json={"method": method, "n_neighbors": 10})
        assert answer.status_code == 200
        assert (answer.json()["method"], answer.json()["n_neighbors"]) == (method, 10)
        assert answer.json()["metric"] == "cosine"
        assert vectors.collection.settings.method["name"] == method
        after = asked(vectors, json={"id": 31})
        assert_answers(vectors, after, 31, 31)
        same = given_suggestions(after[0]) == given_suggestions(before[0])
        assert same == (method == "MLkNN")  # the original one


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"method": "MLkNN"},
        {"method": "os.system", "n_neighbors": 3},
        {"method": "MLkNN", "n_neighbors": 0},
        {"method": "MLkNN", "n_neighbors": True},
        {"method": "MLkNN", "n_neighbors": 3, "metric": "euclidean"},
    ],
)
def test_invalid_settings_change_nothing(reading, change):
    before = reading["vectors"].collection.settings
    assert reading["vectors"].code("PUT", "/api/settings", json=change) == (422, "invalid")
    assert reading["vectors"].collection.settings == before


# Suggestions.


@pytest.mark.parametrize("kind", ["vectors", "pictures", "texts"])
def test_tags_are_suggested_for_an_item_by_id(reading, kind):
    client = reading[kind]
    found = asked(client, json={"id": 5})
    assert_answers(client, found, 5, 5)
    item = client.collection.item(5)
    for answer in found:
        assert (answer["name"], answer["tags"], answer["no"]) == (item.name, item.yes, item.no)


def test_tags_are_suggested_for_a_vector(reading):
    client = reading["vectors"]
    found = asked(client, json={"vector": NEAR_LIGHT})
    assert_answers(client, found, np.array(NEAR_LIGHT, np.float32))
    assert found[0]["suggestions"][0]["tag"] == "light"
    assert [found[0][key] for key in ("name", "tags", "no")] == ["", None, None]


def test_tags_are_suggested_for_a_text_in_json_or_as_a_file(reading):
    client = reading["texts"]
    found = asked(client, json={"text": NEW_TEXT})
    assert_answers(client, found, vector_of(client, NEW_TEXT.encode()))
    assert found[0]["suggestions"][0]["tag"] == "winter"
    plain = {"content": NEW_TEXT.encode(), "headers": {"content-type": "text/plain; charset=x"}}
    assert asked(client, **plain) == found
    sent = asked(client, files={"file": ("rocks.txt", NEW_TEXT.encode())})
    assert [answer.pop("name") for answer in sent] == ["rocks.txt"] * 3
    assert sent == [{key: value for key, value in one.items() if key != "name"} for one in found]


@pytest.mark.parametrize("field", ["file", "picture"])
def test_tags_are_suggested_for_a_picture_as_a_form_or_raw(reading, field):
    client, new = reading["pictures"], picture(99)
    found = asked(client, new)
    assert_answers(client, found, vector_of(client, new))
    sent = asked(client, files={field: ("new.png", new, "text/html")})
    assert [answer["name"] for answer in sent] == ["new.png"] * 3
    assert given_suggestions(sent[0]) == given_suggestions(found[0])


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_file_with_the_content_of_an_item_is_answered_as_this_item(reading, kind):
    client = reading[kind]
    found = asked(client, files={"file": ("other name", client.collection.content(2))})
    assert_answers(client, found, 2, 2)
    assert found[0]["name"] == client.collection.item(2).name


def test_queries_are_not_stored(reading):
    client = reading["pictures"]
    before = client.collection.last_change()
    asked(client, picture(98))
    assert client.collection.last_change() == before
    assert not client.uploads.exists()


def test_the_number_of_answers_is_as_requested(reading):
    client, question = reading["vectors"], {"id": 31}
    assert len(client.post("/api/tag?top=1", json=question).json()["suggestions"]) == 1
    assert len(client.post("/api/similar?top=3", json=question).json()["items"]) == 3
    assert len(client.post("/api/similar?top=3", json=question | {"top": 7}).json()["items"]) == 7
    found = client.post("/api/retrieve?top=2&per_tag=3", json=question).json()["groups"]
    assert [len(group["items"]) for group in found] == [3, 3]
    assert len(client.post("/api/tag", json=question | {"top": 2}).json()["suggestions"]) == 2


def test_near_pictures_have_thumbnail_addresses(reading):
    for one in asked(reading["pictures"], json={"id": 1})[2]["items"]:
        answer = reading["pictures"].get(one["thumbnail"])
        assert answer.headers["content-type"] == "image/jpeg"
        assert "immutable" in answer.headers["cache-control"]
    assert asked(reading["texts"], json={"id": 1})[2]["items"][0]["thumbnail"] is None


@pytest.mark.parametrize(
    ("kind", "question", "wanted"),
    [
        ("vectors", {"id": 99}, 404),
        ("vectors", {"id": 0}, 422),
        ("vectors", {"id": "1"}, 422),
        ("vectors", {"id": 1.5}, 422),
        ("vectors", {"id": True}, 422),
        ("vectors", {"id": 2**63}, 422),
        ("vectors", {}, 422),
        ("vectors", [], 422),
        ("vectors", {"id": 1, "vector": NEAR_LIGHT}, 422),
        ("vectors", {"id": 1, "other": 1}, 422),
        ("vectors", {"id": 1, "top": 0}, 422),
        ("vectors", {"id": 1, "top": "5"}, 422),
        ("vectors", {"vector": []}, 422),
        ("vectors", {"vector": [1, 2, 3]}, 422),
        ("vectors", {"vector": [1, 2, 3, 1e300]}, 422),
        ("vectors", {"vector": [1, 2, 3, "4"]}, 422),
        ("vectors", {"vector": [1, 2, 3, True]}, 422),
        ("vectors", {"vector": [1, 2, 3, None]}, 422),
        ("vectors", {"text": "x"}, 422),
        ("pictures", {"text": "x"}, 422),
        ("pictures", {"vector": [1]}, 422),
        ("texts", {"vector": [1]}, 422),
        ("texts", {"text": ""}, 422),
        ("texts", {"text": " \n"}, 415),
        ("texts", {"text": "a\0b"}, 415),
    ],
)
def test_invalid_queries(reading, kind, question, wanted):
    what = random.Random(str(question)).choice(["tag", "retrieve", "similar"])
    assert reading[kind].code("POST", f"/api/{what}", json=question)[0] == wanted


@pytest.mark.parametrize(
    ("content", "kind", "wanted"),
    [
        (b"{", "application/json", (422, "invalid")),
        (b"", "application/json", (422, "invalid")),
        (b'{"vector": [NaN, 1, 1, 1]}', "application/json", (422, "invalid")),
        (b'{"vector": [1e999, 1, 1, 1]}', "application/json", (422, "invalid")),
        (b'{"id": ' + b"9" * 9999 + b"}", "application/json", (422, "invalid")),
        (b"[" * 99_999, "application/json", (422, "invalid")),
        (b'{"text": "\\ud800"}', "application/json", (422, "invalid")),
        (b"\xff\xfe", "application/json", (422, "invalid")),
        (b"x", "multipart/form-data", (400, "bad_request")),
        (b"x", "multipart/form-data; boundary=b", (400, "bad_request")),
        (b"--b--\r\n", "multipart/form-data; boundary=b", (422, "invalid")),
        (b"id=1", "application/x-www-form-urlencoded", (415, "unsupported")),
        (b"<id>1</id>", "text/xml", (415, "unsupported")),
        (b"x", "image/png", (415, "unsupported")),
        (b"x", "", (415, "unsupported")),
    ],
)
def test_invalid_bodies(reading, content, kind, wanted):
    request = {"content": content, "headers": {"content-type": kind}}
    assert reading["vectors"].code("POST", "/api/tag", **request) == wanted


def test_questions_to_a_person_are_those_of_the_collection(reading):
    client = reading["vectors"]
    for strategy in ("mixed", "learn", "confident"):
        found = client.get(f"/api/questions?limit=3&strategy={strategy}").json()["questions"]
        wanted = client.collection.questions(3, strategy)
        assert [one["item"]["id"] for one in found] == [one.item for one in wanted]
        assert [one["why"] for one in found] == [one.why for one in wanted]
        for one, its in zip(found, wanted, strict=True):
            told = [(each["tag"], each["probability"]) for each in one["suggestions"]]
            assert told == [(each.tag, each.probability) for each in its.suggestions]


def test_questions_about_a_tag_and_without_some_items(reading):
    client = reading["vectors"]
    found = client.get("/api/questions", params={"tag": "light", "limit": 4}).json()["questions"]
    wanted = client.collection.questions(4, tag="light")
    assert [one["item"]["id"] for one in found] == [one.item for one in wanted]
    skipped = [one.item for one in wanted[:2]]
    params = {"tag": "light", "limit": 2, "without": skipped}
    found = client.get("/api/questions", params=params).json()["questions"]
    assert found
    assert not {one["item"]["id"] for one in found} & {*skipped}
    assert client.code("GET", "/api/questions?tag=none") == (404, "not_found")
    assert client.code("GET", "/api/questions?without=0") == (422, "invalid")
    assert client.code("GET", "/api/questions?limit=101") == (422, "invalid")


# Items.


def all_pages(client, **params):
    """The items of all pages; every page except the last must be full."""
    found = []
    for _ in range(100):
        page = client.get("/api/items", params=params).json()
        found += page["items"]
        if page["next"] is None:
            return found
        assert len(page["items"]) == params["limit"]
        assert page["next"] == page["items"][-1]["id"]
        params["after"] = page["next"]
    raise AssertionError("there is always a next page")


@pytest.mark.parametrize("limit", [7, 10, 40, 1000])
def test_pages_of_items_end_where_the_items_do(reading, limit):
    client = reading["vectors"]
    assert [one["id"] for one in all_pages(client, limit=limit)] == client.collection.ids()


@pytest.mark.parametrize(
    "filters",
    [
        {"tag": "light"},
        {"tag": "dark", "name": "v1"},
        {"name": "V2"},
        {"name": "no such name"},
        {"state": "tagged"},
        {"state": "untagged"},
        {"state": "undecided"},
        {"state": "missing"},
        {"state": "tagged", "tag": "Places|Rome", "after": 20},
    ],
)
def test_items_are_chosen_by_tag_name_and_state(reading, filters):
    client = reading["vectors"]
    found = [one["id"] for one in all_pages(client, limit=6, **filters)]
    assert found == client.collection.ids(**filters)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("tag=none", 404),
        ("tag=", 422),
        ("tag=%00", 422),
        ("tag=%F0", 404),
        ("state=no", 422),
        ("limit=0", 422),
        ("limit=1001", 422),
        ("limit=1e2", 422),
        ("after=-1", 422),
        ("after=9223372036854775808", 422),
        (f"name={'x' * 1001}", 422),
    ],
)
def test_items_that_cannot_be_listed(reading, query, wanted):
    assert reading["vectors"].code("GET", f"/api/items?{query}")[0] == wanted


def test_an_item_is_described(pictures):
    collection = pictures.collection
    collection.tag(1, "bird", by="suggestion")
    collection.reject(1, "fish")
    item = collection.item(1)
    found = pictures.get("/api/items/1").json()
    assert found == {
        "id": 1,
        "name": "0.png",
        "tags": ["sea", "bird"],
        "accepted": ["bird"],
        "no": ["fish"],
        "is_missing": False,
        "text": None,
        "files": ["0.png"],
        "sha256": item.content.hex(),
        "thumbnail": f"/thumbnails/1?{item.content.hex()[:16]}",
    }
    assert pictures.get("/api/items/1/tags").json() == found


def test_the_beginning_of_a_text_is_shown(reading):
    text = reading["texts"].collection.content(3).decode()
    assert reading["texts"].get("/api/items/3").json()["text"] == text


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not have")
def test_undecodable_file_names_are_shown_escaped(pictures, tmp_path):
    (tmp_path / "pictures" / os.fsdecode(b"bytes\xff.png")).write_bytes(picture(77))
    collection = pictures.collection
    run_index(collection, plan_index(collection, tmp_path / "pictures"))
    found = pictures.get("/api/items/11").json()
    assert found["name"] == "bytes\\xff.png"
    assert found["files"] == ["bytes\\xff.png"]
    assert pictures.get("/api/items", params={"name": "bytes"}).json()["items"] == [found]
    assert asked(pictures, json={"id": 11})[0]["name"] == found["name"]


@pytest.mark.parametrize("id", ["0", "-1", "x", "1.5", "9223372036854775808", "%00", "1%0a2"])
def test_invalid_ids(reading, id):
    for method, end in [("GET", ""), ("GET", "/tags"), ("DELETE", ""), ("POST", "/tags")]:
        assert reading["vectors"].code(method, f"/api/items/{id}{end}") == (422, "invalid")


def test_unknown_items(reading):
    client = reading["vectors"]
    for method, end in [("GET", ""), ("GET", "/tags"), ("DELETE", "")]:
        assert client.code(method, f"/api/items/99{end}") == (404, "not_found")
    change = {"tags": ["light"]}
    assert client.code("POST", "/api/items/99/tags", json=change) == (404, "not_found")
    assert client.code("POST", "/api/decisions", json=change | {"ids": [1, 99]})[0] == 404
    assert (
        client.code("POST", "/api/answers", json={"answers": [{"id": 99, "no": ["x"]}]})[0] == 404
    )


# Items that are added.


def uploaded(client, content, name="new.png", **data):
    return client.post("/api/items", files={"file": (name, content)}, data=data)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("as_form", [True, False])
def test_the_same_picture_twice_is_one_item_and_one_file(pictures, as_form):
    new = picture(50)

    def send():
        if as_form:
            return uploaded(pictures, new, "beach.jpg")
        headers = {"content-type": "image/jpeg"}
        return pictures.post("/api/items", content=new, headers=headers)

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["is_new"], second.json()["is_new"]) == (True, False)
    assert first.json()["id"] == second.json()["id"] == 11
    digest = hashlib.sha256(new).hexdigest()
    assert files_in(pictures.uploads) == [f"{digest}.png"]
    assert (pictures.uploads / f"{digest}.png").read_bytes() == new
    assert first.json()["item"] == second.json()["item"] == pictures.get("/api/items/11").json()
    assert first.json()["item"]["name"] == ("beach.jpg" if as_form else f"{digest[:12]}.png")
    assert first.json()["item"]["sha256"] == digest
    assert len(pictures.collection.ids()) == 11


def test_a_picture_that_was_indexed_is_not_kept_again(pictures):
    answer = uploaded(pictures, picture(3))
    assert (answer.status_code, answer.json()["id"]) == (200, 4)
    assert files_in(pictures.uploads) == []
    assert answer.json()["item"]["name"] == "3.png"


def test_a_missing_file_is_replaced_by_the_upload(pictures, tmp_path):
    (tmp_path / "pictures" / "3.png").unlink()
    collection = pictures.collection
    collection.set_files(tmp_path / "pictures", missing=["3.png"])
    assert pictures.get("/api/items/4").json()["is_missing"]
    answer = uploaded(pictures, picture(3), "again.png")
    assert (answer.status_code, answer.json()["id"]) == (200, 4)
    assert not answer.json()["item"]["is_missing"]
    assert answer.json()["item"]["tags"] == ["sea", "sky"]
    assert pictures.get("/thumbnails/4").status_code == 200
    assert collection.verify()


def test_an_upload_with_tags_is_undone_as_one_change(pictures):
    answer = uploaded(pictures, picture(50), tags=["bird", "Places|Rome"])
    assert answer.json()["item"]["tags"] == ["bird", "Places|Rome"]
    assert [one.kind for one in pictures.collection.changes(2)] == ["tag", "add"]
    assert pictures.post("/api/undo").json()["undone"]["kind"] in ("add", "tag")
    assert pictures.code("GET", "/api/items/11") == (404, "not_found")
    assert "bird" not in {one.name for one in pictures.collection.tags()}
    assert uploaded(pictures, picture(50)).status_code == 201


def test_a_known_picture_gets_the_tags_it_is_sent_with(pictures):
    answer = uploaded(pictures, picture(0), tags=["bird"])
    assert answer.status_code == 200
    assert answer.json()["item"]["tags"] == ["sea", "bird"]
    pictures.post("/api/undo")
    assert pictures.get("/api/items/1").json()["tags"] == ["sea"]


@pytest.mark.parametrize("tag", ["", " ", "a\nb", "a||b", "x" * 1001, "\x1b[2J"])
def test_an_invalid_tag_adds_nothing(reading, tag):
    pictures = reading["pictures"]
    before = pictures.collection.last_change()
    request = {"files": {"file": ("new.png", picture(50))}, "data": {"tags": ["fine", tag]}}
    assert pictures.code("POST", "/api/items", **request) == (422, "invalid")
    assert pictures.collection.last_change() == before
    assert files_in(pictures.uploads) == []


def test_a_form_has_one_file_under_its_name(pictures):
    new = picture(50)
    two = [("file", ("a.png", new)), ("file", ("b.png", new))]
    assert pictures.code("POST", "/api/items", files=two)[0] == 400
    assert pictures.code("POST", "/api/items", files={"tags": ("a.png", new)})[0] == 422
    assert pictures.code("POST", "/api/items", files={"other": ("a.png", new)})[0] == 422
    both = {"files": {"file": ("a.png", new)}, "data": {"other": "x"}}
    assert pictures.code("POST", "/api/items", **both)[0] == 422
    many = {"files": {"file": ("a.png", new)}, "data": {"tags": [f"t{n}" for n in range(1001)]}}
    assert pictures.code("POST", "/api/items", **many)[0] == 400
    long = {"files": {"file": ("a.png", new)}, "data": {"tags": "x" * 70_000}}
    assert pictures.code("POST", "/api/items", **long)[0] == 400
    assert len(pictures.collection.ids()) == 10


def test_a_vector_is_added_by_its_name_and_its_numbers(vectors):
    new = {"name": "new one", "vector": NEAR_LIGHT, "tags": ["light"]}
    first, second = (vectors.post("/api/items", json=new) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"] == 41
    assert first.json()["item"]["name"] == "new one"
    assert first.json()["item"]["tags"] == ["light"]
    np.testing.assert_array_equal(vectors.collection.vectors([41])[0], np.float32(NEAR_LIGHT))
    other = vectors.post("/api/items", json=new | {"name": "other"})
    assert (other.status_code, other.json()["id"]) == (201, 42)
    assert files_in(vectors.uploads) == []


def test_a_text_is_added_in_json_or_as_a_file(texts):
    first = texts.post("/api/items", json={"name": "rocks", "text": NEW_TEXT, "tags": ["stone"]})
    second = uploaded(texts, NEW_TEXT.encode(), "rocks.txt")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["item"]["name"] == "rocks"
    assert first.json()["item"]["text"] == NEW_TEXT
    assert second.json()["item"] == first.json()["item"]
    digest = hashlib.sha256(NEW_TEXT.encode()).hexdigest()
    assert files_in(texts.uploads) == [f"{digest}.txt"]
    assert texts.collection.content(7) == NEW_TEXT.encode()


@pytest.mark.parametrize(
    ("kind", "new", "wanted"),
    [
        ("vectors", {"name": "x"}, 422),
        ("vectors", {"vector": NEAR_LIGHT}, 422),
        ("vectors", {"name": "", "vector": NEAR_LIGHT}, 422),
        ("vectors", {"name": "x", "vector": [1]}, 422),
        ("vectors", {"name": "x", "vector": NEAR_LIGHT, "text": "x"}, 422),
        ("vectors", {"name": "x", "vector": NEAR_LIGHT, "tags": [""]}, 422),
        ("vectors", {"name": "x", "vector": NEAR_LIGHT, "tags": ["a\0"]}, 422),
        ("vectors", {"name": "x", "text": "x"}, 422),
        ("texts", {"name": "x", "vector": [1]}, 422),
        ("texts", {"name": "x", "text": "\n"}, 415),
        ("pictures", {"name": "x", "text": "x"}, 422),
    ],
)
def test_invalid_new_items(reading, kind, new, wanted):
    client = reading[kind]
    before = client.collection.last_change()
    assert client.code("POST", "/api/items", json=new)[0] == wanted
    assert client.collection.last_change() == before


def test_what_is_added_is_learned_at_once(vectors):
    new = {"name": "new", "vector": [-9, -9, 9, 9], "tags": ["rare"]}
    vectors.post("/api/items", json=new)
    found = vectors.post("/api/tag", json={"vector": new["vector"]}).json()["suggestions"]
    assert found[0]["tag"] == "rare" or "rare" in {one["tag"] for one in found}
    assert vectors.post("/api/similar", json={"vector": [-9, -9, 9, 9]}).json()["items"][0] == {
        "id": 41,
        "name": "new",
        "distance": pytest.approx(0, abs=1e-6),
        "thumbnail": None,
    }


# Items that are forgotten.


def test_an_upload_that_is_forgotten_loses_its_file(pictures):
    new = uploaded(pictures, picture(50), tags=["bird"]).json()["id"]
    assert len(files_in(pictures.uploads)) == 1
    answer = pictures.delete(f"/api/items/{new}")
    assert answer.status_code == 200
    assert (answer.json()["change"]["kind"], answer.json()["items"]) == ("forget", [])
    assert files_in(pictures.uploads) == []
    assert pictures.code("GET", f"/api/items/{new}") == (404, "not_found")
    assert pictures.code("DELETE", f"/api/items/{new}") == (404, "not_found")
    assert pictures.collection.verify()


# Uploads that are taken back.


def test_an_undone_upload_loses_its_file(pictures):
    first = uploaded(pictures, picture(50), tags=["bird"]).json()["item"]["files"]
    second = uploaded(pictures, picture(51)).json()["item"]["files"]
    assert pictures.post("/api/undo").json()["undone"]["said"] == "added 1 item"
    assert files_in(pictures.uploads) == first
    again = uploaded(pictures, picture(51)).json()
    assert again["item"]["files"] == second  # a repeated upload creates it again
    for _ in range(2):
        pictures.post("/api/undo")
    assert files_in(pictures.uploads) == []
    assert len(pictures.collection.ids()) == 10


# Tags of items.


def test_tags_are_given_rejected_and_cleared_in_one_change(vectors):
    change = {"tags": ["blue", "Places|Oslo"], "no": ["dark"], "clear": ["light"]}
    answer = vectors.post("/api/items/31/tags", json=change).json()
    (item,) = answer["items"]
    assert (item["tags"], item["no"]) == (["blue", "Places|Oslo"], ["dark"])
    assert (answer["change"]["kind"], answer["change"]["items"]) == ("decide", 1)
    assert answer["change"]["number"] == vectors.collection.last_change()
    vectors.post("/api/items/31/tags", json={"clear": ["blue", "dark"]})
    assert vectors.get("/api/items/31/tags").json()["tags"] == ["Places|Oslo"]


def test_accepted_suggestions_are_distinguished_from_typed_tags(vectors):
    vectors.post("/api/items/31/tags", json={"tags": ["light"], "by": "suggestion", "no": ["dark"]})
    item = vectors.collection.item(31)
    assert {name: one.by for name, one in item.tags.items()} == {
        "light": "suggestion",
        "dark": "person",
    }
    assert vectors.get("/api/items/31").json()["accepted"] == ["light"]


def test_a_change_without_effect_is_not_recorded(vectors):
    before = vectors.collection.last_change()
    answer = vectors.post("/api/items/1/tags", json={"tags": ["light"], "no": ["dark"]}).json()
    assert answer["change"] is None
    assert answer["items"][0]["tags"] == ["light"]
    assert vectors.collection.last_change() == before


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tags": []},
        {"tags": "light"},
        {"tags": [1]},
        {"tags": ["a\nb"]},
        {"tags": ["a", "a"]},
        {"tags": ["a"], "no": ["a"]},
        {"tags": ["a"], "by": "robot"},
        {"tags": ["a"], "is_new": True},
        {"tags": [f"t{n}" for n in range(1001)]},
        ["a"],
        None,
    ],
)
def test_invalid_changes_of_tags(reading, change):
    client = reading["vectors"]
    before = client.collection.last_change()
    for address in ("/api/items/1/tags", "/api/decisions"):
        given = (
            change | {"ids": [1]}
            if address == "/api/decisions" and isinstance(change, dict)
            else change
        )
        assert client.code("POST", address, json=given) == (422, "invalid")
    assert client.collection.last_change() == before


def test_an_unpaired_surrogate_is_refused_everywhere(reading):
    client, headers = reading["vectors"], {"content-type": "application/json"}
    for body in (b'{"tags": ["\\ud800"]}', b'{"\\ud800": 1}', b'{"by": "\\udfff", "tags": ["a"]}'):
        request = {"content": body, "headers": headers}
        assert client.code("POST", "/api/items/1/tags", **request) == (422, "invalid")


def test_many_items_are_decided_in_one_change(vectors):
    ids = [*range(30, 41), 31, 30]
    answer = vectors.post("/api/decisions", json={"ids": ids, "tags": ["new"], "no": ["dark"]})
    assert answer.json()["change"]["items"] == 11
    assert [one["id"] for one in answer.json()["items"]] == [*range(30, 41)]
    assert vectors.collection.ids("new") == [*range(30, 41)]
    vectors.post("/api/undo")
    assert "new" not in {one.name for one in vectors.collection.tags()}


def test_an_unknown_item_makes_the_whole_decision_fail(vectors):
    request = {"json": {"ids": [1, 2, 99], "tags": ["new"]}}
    assert vectors.code("POST", "/api/decisions", **request) == (404, "not_found")
    assert "new" not in {one.name for one in vectors.collection.tags()}


@pytest.mark.parametrize("ids", [[], [0], ["1"], [1.5], [True], 1, None, [2**63], [1] * 10_001])
def test_decisions_about_invalid_items(reading, ids):
    request = {"json": {"ids": ids, "tags": ["new"]}}
    assert reading["vectors"].code("POST", "/api/decisions", **request) == (422, "invalid")


def test_at_most_a_hundred_items_are_reported(vectors):
    rows = np.random.default_rng(1).normal(size=(70, 4)).astype(np.float32)
    vectors.collection.add([NewItem(vector_content("", row), row) for row in rows])
    answer = vectors.post("/api/decisions", json={"ids": [*range(1, 111)], "tags": ["new"]}).json()
    assert (answer["change"]["items"], len(answer["items"])) == (110, 100)


def test_answers_to_questions_are_one_change(vectors):
    first = {"id": 31, "accepted": ["light"], "tags": ["blue"], "no": ["dark"]}
    answer = vectors.post("/api/answers", json={"answers": [first, {"id": 32, "no": ["light"]}]})
    assert answer.json()["change"]["items"] == 2
    told = {one["id"]: one for one in answer.json()["items"]}
    assert (told[31]["tags"], told[31]["accepted"]) == (["light", "blue"], ["light"])
    assert (told[31]["no"], told[32]["no"]) == (["dark"], ["light"])
    vectors.post("/api/undo")
    assert not vectors.collection.item(31).tags
    assert not vectors.collection.item(32).tags


@pytest.mark.parametrize(
    "given", [[], [{}], [{"id": 1}], [{"id": 1, "no": [" "]}], [{"id": 1, "by": "x"}], {}]
)
def test_invalid_answers(reading, given):
    request = {"json": {"answers": given}}
    assert reading["vectors"].code("POST", "/api/answers", **request) == (422, "invalid")


# Tags.


def listed(client, query=""):
    answer = client.get(f"/api/tags?{query}").json()
    return [one["name"] for one in answer["tags"]], answer["total"]


def test_tags_are_listed_with_their_counts(reading):
    answer = reading["vectors"].get("/api/tags").json()
    assert answer["tags"] == [
        {"name": "light", "yes": 15, "no": 0},
        {"name": "dark", "yes": 14, "no": 2},
        {"name": "Places|Rome", "yes": 14, "no": 0},
    ]
    assert answer["total"] == 3


def test_tags_are_sorted_and_searched(reading):
    client = reading["vectors"]
    assert listed(client, "sort=name") == (["dark", "light", "Places|Rome"], 3)
    assert listed(client, "q=ROME") == (["Places|Rome"], 1)
    assert listed(client, "q=l") == (["light", "Places|Rome"], 2)
    assert listed(client, "q=none") == ([], 0)
    assert listed(client, "sort=name&offset=1&limit=1") == (["light"], 3)
    assert listed(client, "offset=99") == ([], 3)
    for query in ("sort=no", "limit=0", "offset=-1", f"q={'x' * 1001}"):
        assert client.code("GET", f"/api/tags?{query}") == (422, "invalid")


def test_a_tag_is_renamed_with_the_levels_below_it(vectors):
    vectors.post("/api/items/1/tags", json={"tags": ["Places"]})
    answer = vectors.post("/api/tags/rename", json={"old": "Places", "new": "Where"}).json()
    assert answer["change"]["kind"] == "rename_tag"
    assert {"Where", "Where|Rome"} < {*listed(vectors)[0]}
    assert vectors.get("/api/items?tag=Where|Rome").json()["items"][0]["id"] == 2
    vectors.post("/api/undo")
    assert {"Places", "Places|Rome"} < {*listed(vectors)[0]}


def test_tags_that_cannot_be_renamed(reading):
    client = reading["vectors"]
    before = listed(client)
    for old, new, wanted in [
        ("light", "dark", (409, "conflict")),
        ("none", "other", (404, "not_found")),
        ("light", "a||b", (422, "invalid")),
        ("light", "x" * 1001, (422, "invalid")),
        ("", "x", (422, "invalid")),
    ]:
        request = {"json": {"old": old, "new": new}}
        assert client.code("POST", "/api/tags/rename", **request) == wanted
    assert client.code("POST", "/api/tags/rename", json={"old": "light"}) == (422, "invalid")
    assert listed(client) == before


def test_tags_are_merged(vectors):
    change = {"tags": ["light", "dark"], "into": "any"}
    answer = vectors.post("/api/tags/merge", json=change).json()
    assert answer["change"]["kind"] == "merge_tags"
    assert listed(vectors)[0] == ["any", "Places|Rome"]
    assert len(vectors.collection.ids("any")) == 29
    request = {"json": {"tags": ["none"], "into": "any"}}
    assert vectors.code("POST", "/api/tags/merge", **request) == (404, "not_found")
    assert vectors.code("POST", "/api/tags/merge", json={"tags": [], "into": "x"})[0] == 422
    vectors.post("/api/undo")
    assert "light" in listed(vectors)[0]


def test_a_tag_is_deleted_and_brought_back(vectors):
    before = vectors.get("/api/tags").json()
    vectors.post("/api/items/1/tags", json={"tags": ["Places"]})
    answer = vectors.post("/api/tags/delete", json={"tag": "dark"}).json()
    assert (answer["change"]["kind"], answer["change"]["items"]) == ("delete_tag", 16)
    assert listed(vectors)[0] == ["light", "Places|Rome", "Places"]
    assert vectors.collection.item(1).no == []  # nor that it was rejected
    vectors.post("/api/tags/delete", json={"tag": "Places"})
    assert listed(vectors)[0] == ["light", "Places|Rome"]
    assert "dark" not in {one.tag for one in vectors.collection.suggest(2)}
    for given, wanted in [("dark", 404), ("", 422), ("a||b", 422)]:
        assert vectors.code("POST", "/api/tags/delete", json={"tag": given})[0] == wanted
    for _ in range(3):
        vectors.post("/api/undo")
    assert vectors.get("/api/tags").json() == before
    assert vectors.collection.verify()


# Changes.


def test_changes_are_listed_latest_first_and_undone(vectors):
    for tag in ("one", "two"):
        vectors.post("/api/items/31/tags", json={"tags": [tag]})
    found = vectors.get("/api/changes?limit=3").json()["changes"]
    assert [one["number"] for one in found] == [6, 5, 4]
    assert [one["kind"] for one in found] == ["decide", "decide", "reject"]
    assert [vectors.post("/api/undo").json()["undone"]["number"] for _ in range(2)] == [6, 5]
    assert vectors.collection.item(31).yes == []
    assert [one["is_undone"] for one in vectors.get("/api/changes").json()["changes"][2:4]] == [
        True,
        True,
    ]


def test_changes_are_described_tag_by_tag(vectors):
    def said(address, **body):
        return vectors.post(address, json=body).json()["change"]["said"]

    def listed():
        return [one["said"] for one in vectors.get("/api/changes").json()["changes"]]

    three = {"ids": [31, 32, 33], "tags": ["sunset"]}
    assert said("/api/decisions", **three) == "sunset added to 3 items"
    given = {"tags": ["boat", "sea"], "no": ["dark"]}
    assert said("/api/items/31/tags", **given) == (
        "boat and sea added to 1 item, dark rejected for 1 item"
    )
    away = {"no": ["sunset"], "clear": ["dark", "boat"]}
    assert said("/api/items/31/tags", **away) == (
        "sunset and boat taken away from 1 item, dark no longer rejected for 1 item"
    )
    many = {"tags": [f"t{n}" for n in range(9)]}
    assert (
        said("/api/items/33/tags", **many) == "t0, t1 and t2 added to 1 item, 6 more tags changed"
    )
    assert said("/api/tags/rename", old="sunset", new="dusk") == "renamed sunset to dusk (3 items)"
    assert said("/api/tags/merge", tags=["t0", "t1"], into="t2") == "merged t0 and t1 (1 item)"
    assert said("/api/tags/delete", tag="dusk") == "deleted dusk (3 items)"
    # Each is described as it was then, whatever came later.
    assert listed()[:7] == [
        "deleted dusk (3 items)",
        "merged t0 and t1 (1 item)",
        "renamed sunset to dusk (3 items)",
        "t0, t1 and t2 added to 1 item, 6 more tags changed",
        "sunset and boat taken away from 1 item, dark no longer rejected for 1 item",
        "boat and sea added to 1 item, dark rejected for 1 item",
        "sunset added to 3 items",
    ]
    assert listed()[7:] == [
        "dark rejected for 2 items",
        "dark and Places|Rome added to 14 items",
        "light added to 15 items",
        "added 40 items",
    ]
    assert vectors.post("/api/undo").json()["undone"]["said"] == "deleted dusk (3 items)"
    assert listed()[:3] == [
        "took back a change to 3 items",
        "deleted a tag of 3 items",  # the log has no details of undone changes
        "merged t0 and t1 (1 item)",
    ]


def test_undo_without_changes(vectors):
    for _ in range(4):
        assert vectors.post("/api/undo").json()["undone"] is not None
    assert vectors.post("/api/undo").json() == {"undone": None}
    assert vectors.collection.ids() == []
    assert vectors.post("/api/tag", json={"vector": NEAR_LIGHT}).json()["suggestions"] == []
    assert vectors.post("/api/similar", json={"vector": NEAR_LIGHT}).json()["items"] == []


# What may not be written.

WRITES = [
    ("PUT", "/api/settings", {"json": {"method": "BRkNN", "n_neighbors": 3}}),
    ("POST", "/api/items", {"files": {"file": ("a.png", picture(50))}}),
    ("DELETE", "/api/items/1", {}),
    ("POST", "/api/items/1/tags", {"json": {"tags": ["x"]}}),
    ("POST", "/api/decisions", {"json": {"ids": [1], "tags": ["x"]}}),
    ("POST", "/api/answers", {"json": {"answers": [{"id": 1, "tags": ["x"]}]}}),
    ("POST", "/api/tags/rename", {"json": {"old": "sea", "new": "x"}}),
    ("POST", "/api/tags/merge", {"json": {"tags": ["sea"], "into": "x"}}),
    ("POST", "/api/tags/delete", {"json": {"tag": "sea"}}),
    ("POST", "/api/undo", {}),
]


def test_every_address_that_changes_something_is_known_here(reading):
    described = reading["pictures"].get("/api/openapi.json").json()["paths"]
    asking = {"/api/tag", "/api/retrieve", "/api/similar"}
    writing = {
        (method.upper(), path)
        for path, methods in described.items()
        for method in methods
        if method != "get" and path not in asking
    }
    assert writing == {(method, path.replace("/1", "/{id}")) for method, path, _ in WRITES}


@pytest.fixture(scope="module")
def readonly(module_serving):
    return module_serving("pictures", readonly=True)


@pytest.mark.parametrize(("method", "address", "request_"), WRITES)
def test_a_readonly_collection_refuses_changes(readonly, method, address, request_):
    assert readonly.code(method, address, **request_) == (403, "readonly")
    assert files_in(readonly.uploads) == []


def test_a_readonly_collection_can_be_read(readonly):
    assert_answers(readonly, asked(readonly, json={"id": 7}), 7, 7)
    assert_answers(readonly, asked(readonly, picture(50)), vector_of(readonly, picture(50)))
    assert len(readonly.get("/api/items").json()["items"]) == 10
    assert readonly.get("/thumbnails/1").status_code == 200
    assert readonly.get("/api/questions").status_code == 200


# Errors.


def test_unknown_methods_and_addresses(reading):
    client = reading["vectors"]
    assert client.code("GET", "/api/none") == (404, "not_found")
    assert client.code("GET", "/api") == (404, "not_found")
    assert client.code("GET", "/api/undo") == (405, "method_not_allowed")
    for address, methods in [("settings", "GET, PUT"), ("items/1", "GET, DELETE"), ("tag", "POST")]:
        answer = client.patch(f"/api/{address}")
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


def raising(client, error):
    return mock.patch.object(client.app.state.served, "totals", side_effect=error)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (OSError(errno.ENOSPC, "full"), (507, "disk_full")),
        (OSError(errno.EDQUOT, "full"), (507, "disk_full")),
        (OSError(errno.EIO, "broken"), (500, "internal")),
        (MemoryError(), (503, "unavailable")),
        (ValueError("secret"), (500, "internal")),
        (KeyError("secret"), (500, "internal")),
        (RuntimeError("secret"), (500, "internal")),
        (RecursionError("secret"), (500, "internal")),
    ],
    ids=repr,
)
def test_errors_of_the_service_have_the_same_form(reading, error, wanted, caplog):
    client = reading["vectors"]
    with raising(client, error):
        assert client.code("GET", "/api/tags") == wanted
        assert "secret" not in client.get("/api/tags").text
    failed = [one for one in caplog.records if one.name == "nearlabel.service"]
    assert [one.getMessage() for one in failed] == ["a request failed"] * 2
    assert failed[0].exc_info[1] is error
    assert client.get("/api/tags").status_code == 200


def test_a_full_disk_adds_nothing(pictures):
    full = OSError(errno.ENOSPC, "full")
    with mock.patch("nearlabel.app.uploads.replacing", side_effect=full):
        request = {"files": {"file": ("new.png", picture(50))}}
        assert pictures.code("POST", "/api/items", **request) == (507, "disk_full")
    assert len(pictures.collection.ids()) == 10
    assert uploaded(pictures, picture(50)).status_code == 201


def test_messages_name_what_is_wrong(reading):
    client = reading["vectors"]

    def said(method, address, **request):
        return client.request(method, address, **request).json()["error"]["message"]

    assert said("GET", "/api/items/99") == "the collection has no item 99"
    assert "limit" in said("GET", "/api/items?limit=0")
    assert "4 numbers; got 3" in said("POST", "/api/tag", json={"vector": [1, 2, 3]})
    many = {"answers": [{"id": 0}] * 20}
    assert said("POST", "/api/answers", json=many).endswith("; and 17 more")
    assert str(client.collection.path) not in said("GET", "/api/items?tag=lights")
    assert "did you mean 'light'?" in said("GET", "/api/items?tag=lights")


def test_large_responses_are_compressed(reading):
    answer = reading["vectors"].get("/api/items?limit=40", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.json()["items"]) == 40


def test_numbers_are_finite_whatever_the_vectors_are(vectors):
    huge, tiny = 3e38, 1e-45
    for number, row in enumerate([[huge] * 4, [-huge, huge, 0, 0], [tiny] * 4, [0, 0, 0, 0]]):
        added = vectors.post(
            "/api/items", json={"name": f"x{number}", "vector": row, "tags": ["x"]}
        )
        assert added.status_code == 201
        for what in ("tag", "retrieve", "similar"):
            answer = vectors.post(f"/api/{what}?top=100", json={"vector": row})
            assert answer.status_code == 200
            json.loads(answer.text, parse_constant=pytest.fail)
            assert '"distance":null' not in answer.text
            assert '"probability":null' not in answer.text
