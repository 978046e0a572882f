"""The OpenAPI description is correct: responses are as described.

Schemathesis generates valid and invalid requests from the description, and
compares the responses with it.
"""

from __future__ import annotations

import pytest
from collection_lives import picture
from hypothesis import strategies as st

pytest.importorskip("schemathesis")

import schemathesis
from schemathesis.engine import events, from_schema

# What is accepted depends on the collection, such as the width of vectors, and on rules that a
# schema cannot express, such as that no tag is given twice.
LEFT_OUT = ["positive_data_acceptance"]
DETERMINISTIC = ["examples", "coverage"]
ALL = [*DETERMINISTIC, "fuzzing", "stateful"]
# Addresses with the same input as /api/tag and /api/answers.
ALIKE = ["/api/retrieve", "/api/similar", "/api/decisions", "/api/items/{id}/tags"]
FILES = st.one_of(
    st.sampled_from([picture(n) for n in (0, 1, 50, 51)]),
    st.sampled_from([b"snow on the mountain", "das Meer, größer".encode(), b""]),
    st.binary(max_size=100),
)


@pytest.fixture(scope="module", autouse=True)
def some_files():
    """Some of the files sent are valid pictures or texts."""
    schemathesis.openapi.format("binary", FILES)
    schemathesis.openapi.media_type("image/*", FILES)


def examined(client, phases, examples, tags=None):
    """The number of requests, and the problems found in their responses."""
    config = schemathesis.Config(seed=0)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", client.app, config=config)
    if tags:
        schema = schema.include(tag=tags).exclude(path=ALIKE)
    schema.config.generation.update(max_examples=examples)
    schema.config.phases.update(phases=phases)
    schema.config.checks.update(excluded_check_names=LEFT_OUT)
    count, faults = 0, []
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            faults.append(repr(event))
        elif isinstance(event, events.ScenarioFinished):
            count += len(event.recorder.interactions)
            faults += [
                f"{check.name}: {check.failure_info.failure}\n{check.failure_info.code_sample}"
                for checks in event.recorder.checks.values()
                for check in checks
                if check.failure_info is not None
            ]
    return count, faults


def served(module_serving, kind):
    return module_serving(kind, names=frozenset({"testserver"}))


@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("vectors", ["service", "tags", "changes"]),
        ("texts", ["suggestions"]),
        ("pictures", ["items"]),
    ],
)
def test_responses_are_as_described(module_serving, kind, tags):
    count, faults = examined(served(module_serving, kind), DETERMINISTIC, 1, tags)
    assert faults == []
    assert count > 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vectors", "texts", "pictures", "nothing"])
def test_thousands_of_responses_are_as_described(module_serving, kind):
    client = served(module_serving, kind)
    count, faults = examined(client, ALL, 300)
    assert faults == []
    assert count > 4000
    assert client.collection.verify()


def test_wrong_descriptions_are_found(module_serving, monkeypatch):
    client = served(module_serving, "vectors")

    def fail():
        raise KeyError

    monkeypatch.setattr(client.app.state.served, "totals", fail)
    _, faults = examined(client, ["fuzzing"], 1, ["tags"])
    assert "not_a_server_error" in str(faults)


def test_every_address_documents_its_errors(module_serving):
    described = served(module_serving, "vectors").app.openapi()
    assert "/metrics" not in described["paths"]
    for path, methods in described["paths"].items():
        assert path.startswith("/api/")
        for operation in methods.values():
            assert {"400", "401", "403", "408", "413", "422", "500", "503"} <= {
                *operation["responses"]
            }
            assert operation["tags"]
            assert operation["description"] or operation["summary"]
            for status, answer in operation["responses"].items():
                schema = answer["content"]["application/json"]["schema"]["$ref"]
                assert schema.endswith("/ErrorBody") == (status >= "400")
