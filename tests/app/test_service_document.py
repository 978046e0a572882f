"""docs/service.md and deploy/: examples run, tables are complete, numbers are those of the code."""

from __future__ import annotations

import configparser
import io
import json
import logging
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack, redirect_stdout
from functools import cache
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from PIL import Image
from served_collections import served

from nearlabel.app import api_answers, followed_folders, guards, logins, page_routes, server
from nearlabel.app import served as shared
from nearlabel.app.request_logs import JsonLines, log_request
from nearlabel.app.responses import CODES
from nearlabel.app.service_settings import SHORTEST_TOKEN, TOKEN_VARIABLE, ServiceSettings
from nearlabel.cli import run
from nearlabel.cli.app import command_line
from nearlabel.collection import Collection, NewItem
from nearlabel.collection.choices import METHODS
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.collection.records import vector_content
from nearlabel.collection.thumbnails import THUMBNAIL_SIZE
from nearlabel.features import picture_formats
from nearlabel.features.photo_decoder import _SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEXT = (ROOT / "docs/service.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8350"
TOKEN = "a-token-for-the-examples"
BLOCK = re.compile(r"(?:<!-- serves: ([\w ]+) -->\n)?```(\w*)\n(.*?)```", re.DOTALL)
BLOCKS = [(where or "pictures", kind, code) for where, kind, code in BLOCK.findall(TEXT)]
NOTES = ["sand and waves", "waves at noon", "snow and ice", "a mountain of snow"]
COLORS = {"sea": (40, 90, 190), "sunset": (230, 120, 50)}
NUMBER = r"\d[\d,]*"
NUMBERS = {5: "five", 8: "eight"}


# What is served.


def painted(seed, tag):
    """A small picture in the colors of a tag."""
    noise = np.random.default_rng(seed).normal(0, 20, (18, 24, 3))
    pixels = np.clip(np.array(COLORS[tag]) + noise, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def indexed(folder, kind, contents, **how):
    """A new collection of files."""
    files = folder / f"{kind} files"
    files.mkdir()
    for name, content in contents.items():
        (files / name).write_bytes(content)
    collection = Collection.create(folder / kind, kind=kind, **how)
    run_index(collection, plan_index(collection, files))
    return collection


def make_pictures(folder):
    """Sixty pictures of the sea or a sunset, in turns; the last ten have no tags."""
    contents = {f"{n:02d}.jpg": painted(n, [*COLORS][n % 2]) for n in range(60)}
    with indexed(folder, "pictures", contents, features="moments") as collection:
        collection.tag([*range(1, 50, 2)], "sea")
        collection.tag([*range(2, 51, 2)], "sunset")


def make_texts(folder):
    contents = {f"{number}.txt": text.encode() for number, text in enumerate(NOTES)}
    with indexed(folder, "texts", contents) as collection:
        collection.tag([1, 2], "sea")
        collection.tag([3, 4], "winter")


def make_vectors(folder):
    vectors = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    with Collection.create(folder / "vectors", kind="vectors") as collection:
        collection.add([NewItem(vector_content(f"{v}", v), v, name=f"{v}") for v in vectors])
        collection.tag([1, 2, 3], "calm")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The address of each collection of the document, by its mark."""
    folder = tmp_path_factory.mktemp("served")
    make_pictures(folder)
    make_texts(folder)
    make_vectors(folder)
    shutil.copytree(folder / "pictures", folder / "guarded")
    with ExitStack() as stack:
        places = {kind: served(folder / kind) for kind in ("pictures", "texts", "vectors")}
        places["pictures with a token"] = served(folder / "guarded", token=TOKEN)
        yield {name: stack.enter_context(place) for name, place in places.items()}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files that examples send, in which they run."""
    monkeypatch.chdir(tmp_path)
    Path("new.jpg").write_bytes(painted(100, "sea"))
    Path("notes.txt").write_text("ice on the mountain", encoding="utf-8")
    Path("token").write_text(f"{TOKEN}\n", encoding="utf-8")
    return tmp_path


def got(address):
    with urlopen(Request(address, headers={"Accept-Encoding": "identity"})) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def described(addresses):
    return json.loads(got(f"{addresses['pictures']}/api/openapi.json"))


# Examples.


def form_of(value):
    """The names and types of values; for lists, those of the first element."""
    if isinstance(value, dict):
        return {name: form_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return [form_of(each) for each in value[:1]]
    return "number" if isinstance(value, int | float) and value is not True else type(value)


def test_the_examples_with_curl_run(addresses, files):
    if shutil.which("curl") is None or shutil.which("bash") is None:
        pytest.skip("the examples need bash and curl")
    help_of_curl = subprocess.run(["curl", "--help", "all"], capture_output=True, text=True)
    if "--json" not in help_of_curl.stdout or "--fail-with-body" not in help_of_curl.stdout:
        pytest.skip("the examples need curl 7.82 or newer")
    commands, told, last = 0, 0, None
    for where, kind, code in BLOCKS:
        if kind == "bash":
            for line in code.splitlines():
                assert line.startswith("curl "), line
                command = line.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)
                assert command.count(ADDRESS) == 1, line
                command = command.replace(ADDRESS, addresses[where])
                done = subprocess.run(
                    ["bash", "-c", command], capture_output=True, text=True, timeout=60
                )
                assert done.returncode == 0, (line, done.stdout, done.stderr)
                last, commands = json.loads(done.stdout), commands + 1
        elif kind == "json" and last is not None:  # the response of the last one
            assert form_of(last) == form_of(json.loads(code)), code
            told, last = told + 1, None
        else:
            last = None
    assert (commands, told) == (18, 4)


def test_the_examples_in_python_run(addresses, files):
    names = {}
    blocks = [code for _, kind, code in BLOCKS if kind == "python"]
    for block in blocks:
        assert re.findall(r"^(?:from|import) ([a-z]+)", block, re.M) in (
            [],
            ["json", "pathlib", "urllib", "urllib"],
        )
        code = block.replace(ADDRESS, addresses["pictures"])
        exec(compile(code, "service.md", "exec"), names)
    assert len(blocks) == 2
    assert names["likely"] == ["sea"]
    item = names["call"]("GET", f"/api/items/{names['added']['id']}")
    assert "sea" in item["tags"]
    assert len(names["untagged"]) == 10
    assert len([*names["items"]()]) == 61
    assert names["code"] == "not_found"


def test_the_example_of_an_error_is_what_is_answered(addresses):
    (shown,) = [
        json.loads(code) for _, kind, code in BLOCKS if kind == "json" and '"error"' in code
    ]
    with pytest.raises(HTTPError) as told:
        got(f"{addresses['pictures']}/api/items/999999")
    with told.value as error:
        assert json.load(error) == shown


def test_the_example_of_a_log_is_a_line_of_it(caplog):
    (shown,) = [code for _, kind, code in BLOCKS if kind == "json" and '"level"' in code]
    shown = json.loads(shown)
    scope = {"method": "POST", "path": "/api/tag", "client": ("127.0.0.1", 1)}
    logger = logging.getLogger("nearlabel.requests")
    before = logger.propagate
    logger.propagate = True
    try:
        with caplog.at_level(logging.INFO, "nearlabel.requests"):
            log_request(scope, 200, 1313, 0.2708)
    finally:
        logger.propagate = before
    line = json.loads(JsonLines().format(caplog.records[-1]))
    assert line.pop("time")[-6:] == shown.pop("time")[-6:]
    assert line == shown


# Tables.


def section(title):
    """The text of a section."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^##?#? |\Z)", TEXT, re.M | re.S)
    assert found, title
    return found[2]


def rows(title):
    """The rows of the tables under a title, as lists of cells."""
    lines = section(title).splitlines()
    table = [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("| ") and not below.startswith("|---")
    ]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def schema_of(described, schema):
    (schema,) = [one for one in schema.get("anyOf", [schema]) if "$ref" in one]
    return described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def fields(described, schema):
    """The names of the fields of a body or an answer."""
    return {*schema_of(described, schema)["properties"]} if schema else set()


def vocabulary(described):
    """All names of fields and of values to choose from."""
    found, left = set(), [described["components"]["schemas"], described["paths"]]
    while left:
        one = left.pop()
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if isinstance(one, dict):
            found |= {*one.get("properties", ())} | {*one.get("enum", ())}
    return found


def test_every_address_is_in_the_table(described):
    table = rows("Addresses")
    known = {
        f"{method.upper()} {path}": about
        for path, methods in described["paths"].items()
        for method, about in methods.items()
    }
    assert sorted(words(address)[0] for address, _, _ in table) == sorted(known)
    names, listed = vocabulary(described), {}
    for address, given, answer in table:
        about = known[words(address)[0]]
        parameters = {
            one["name"]: one["schema"].get("default")
            for one in about.get("parameters", ())
            if one["in"] == "query"
        }
        taken = about.get("requestBody", {}).get("content", {})
        body = fields(described, taken.get("application/json", {}).get("schema"))
        assert {*parameters} | body <= {*words(given)}, address
        assert ("file" in given) == ("multipart/form-data" in taken), address
        shown = dict(re.findall(rf"`(\w+)` \(({NUMBER})\)", given.partition("body")[0]))
        numbers = {name: str(one) for name, one in parameters.items() if isinstance(one, int)}
        assert shown == numbers, address
        ok = about["responses"].get("200", about["responses"].get("201"))
        told = {*words(answer)}
        for short in re.findall("[A-Z]{4,}", answer):  # the fields are listed where it first occurs
            told |= listed.setdefault(short, told)
        assert fields(described, ok["content"]["application/json"]["schema"]) <= told, address
        used = {word for word in (*words(given), *words(answer)) if not word.startswith("/api")}
        assert used - names - {*parameters, "file"} == set(), address


def test_required_fields_are_marked(described):
    for address, given, _ in rows("Addresses"):
        method, path = words(address)[0].split()
        about = described["paths"][path][method.lower()]
        schema = about.get("requestBody", {}).get("content", {}).get("application/json", {})
        required = schema and schema_of(described, schema["schema"]).get("required")
        assert bool(required) == ("*required*" in given), address


def test_every_code_is_in_the_table():
    table = [(int(status), words(code)[0]) for status, code, _ in rows("Errors")]
    extra = {(403, "host_refused"), (403, "origin_refused"), (403, "readonly")}
    extra.add((409, "changed_since"))
    assert {*table} == {(status, code) for status, (code, _) in CODES.items()} | extra
    assert table == sorted(table, key=lambda row: row[0])
    sources = "".join(path.read_text() for path in (ROOT / "src/nearlabel/app").glob("*.py"))
    assert all(f'"{code}"' in sources for _, code in table)


def test_every_metric_is_in_the_table(addresses):
    table = {words(name)[0]: words(labels) for name, labels, _ in rows("Health, metrics, logs")}
    text = got(f"{addresses['vectors']}/metrics")
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)", text, re.M))
    named = {name for name in kinds if not name.endswith("_created")}
    assert {name for name in named if not name.startswith("process_")} == {*table} - {"process_*"}
    if sys.platform == "linux":
        assert any(name.startswith("process_") for name in named)
    for name, labels in table.items():
        lines = re.findall(rf"^{name}\w*{{(.*)}}", text, re.M)
        found = {label for line in lines for label in re.findall(r'(\w+)="', line)} - {"le"}
        assert found <= {*labels}, name
    assert {*table["nearlabel_items"]} == {"state", *re.findall(r'state="(\w+)"', text)}


def test_every_key_is_in_the_table():
    dialog = (ROOT / "src/nearlabel/app/templates/base.html").read_text(encoding="utf-8")
    keys = {*re.findall(r"<kbd>(.*?)</kbd>", dialog)} | {"?"}
    assert {key for cell, _ in rows("Review") for key in words(cell)} == keys


def test_every_option_is_in_the_table():
    table = {words(option)[0].split()[0] for option, _ in rows("Start")}
    assert table == options() - {"--collection"}
    defaults = parsed(["serve", "collection"], defaults=True)
    for option, _ in rows("Start"):
        name, *value = words(option)[0].split()
        if value and not value[0].isupper():
            assert value[0] == str(defaults[name.strip("-").replace("-", "_")]), name


# Numbers.


def test_limits_are_those_of_the_code(described):
    settings = ServiceSettings(Path("uploads"))
    schemas = described["components"]["schemas"]
    question = schemas["ItemQuery"]["properties"]
    text = question["text"]["anyOf"][0]["maxLength"]
    vector = question["vector"]["anyOf"][0]["maxItems"]
    tags = schemas["TagChange"]["properties"]["tags"]
    many = described["paths"]["/api/items"]["get"]["parameters"]
    limits = {one["name"]: one["schema"].get("maximum") for one in many}
    few = described["paths"]["/api/questions"]["get"]["parameters"][0]["schema"]["maximum"]
    shown = dict(rows("Limits"))
    wanted = {
        "size of a request": [settings.most_bytes // 2**20, 1, 1024],
        "size of a login": [guards._MOST_LOGIN],
        "size of a picture": [settings.most_pixels],
        "HEIC and RAW photos": [_SECONDS],
        "pictures decoded at the same time": [shared._DECODED_AT_ONCE],
        "texts": [text],
        "vectors": [vector],
        "a tag": [tags["items"]["maxLength"]],
        "tags in a list": [tags["maxItems"]],
        "items in one request to `/api/decisions`": [
            schemas["Decisions"]["properties"]["ids"]["maxItems"]
        ],
        "`top`, `per_tag`, `limit`": [limits["limit"], few],
        "time for a request to arrive": [int(settings.seconds), guards._SLOWEST],
        "time for the head of a request": [int(settings.seconds)],
        "reading an answer": [server._SLOWEST, int(settings.seconds)],
        "connections": [server._CONNECTIONS],
    }
    formats = shown.pop("formats").partition(". ")[0]
    assert {*re.split(", |; | and ", formats.replace(" with the extra `photos`", ""))} == {
        *picture_formats._FORMATS
    }
    shown["texts"] = shown["texts"].replace("UTF-8", "")
    numbers = {
        what: [int(one.replace(",", "")) for one in re.findall(NUMBER, limit)]
        for what, limit in shown.items()
    }
    assert numbers == wanted


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Who can reach it", f"at least {SHORTEST_TOKEN} characters"),
        ("Who can reach it", f"`{TOKEN_VARIABLE}`"),
        ("Who can reach it", f"a cookie for {logins.SECONDS // 86400} days"),
        ("What never happens", f"Thumbnails ({THUMBNAIL_SIZE} pixels)"),
        ("What never happens", f"previews ({page_routes._PREVIEW:,} pixels)"),
        ("Stopping and backups", f"have {server._LAST_SECONDS} seconds to finish"),
        ("Tags, changes and settings", f"more than {page_routes._UNDO_UNASKED} items asks"),
        ("Review", f"After {NUMBERS[page_routes.NO_IN_A_ROW]} answers of No in a row"),
        ("Tags, changes and settings", f"`{METHODS[0]}` (the default)"),
        (
            "One process writes",
            f"every {NUMBERS[int(followed_folders._EVERY)]} seconds or less often",
        ),
        ("Addresses", f"at most {api_answers._ITEMS_TOLD} of them"),
    ],
)
def test_numbers_in_the_text_are_those_of_the_code(title, said):
    assert said in section(title)


def test_every_method_is_named():
    assert all(f"`{name}`" in section("Tags, changes and settings") for name in METHODS)


def test_links_lead_somewhere():
    titles = re.findall(r"^#+ (.+)$", TEXT, re.M)
    here = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    here |= {*re.findall(r'<a id="(\w+)">', TEXT)}
    links = re.findall(r"\]\(([^)]+)\)", TEXT) + re.findall(r'<img src="([^"]+)"', TEXT)
    assert {link[1:] for link in links if link.startswith("#")} <= here
    paths = {link.partition("#")[0] for link in links if not link.startswith("#")}
    assert [path for path in paths if not (ROOT / "docs" / path).exists()] == []


# Files for operation.


@cache
def options():
    """The names in the help of the command."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert run(["serve", "--help"]) == 0
    return {*re.findall(r"--[a-z-]+", printed.getvalue().partition("Examples:")[0])}


def parsed(command, *, defaults=False):
    """The arguments of a command that serves, as the command line takes them."""
    verb, *given = command
    assert verb == "serve"
    assert {word for word in given if word.startswith("--")} <= options()
    _, bound, _ = command_line().parse_args(command, exit_on_error=False, print_error=False)
    if defaults:
        bound.apply_defaults()
    return bound.arguments


def unit():
    """The settings of the unit, each with all of its values."""

    class Several(dict):
        def __setitem__(self, key, value):
            if isinstance(value, list) and key in self:
                value = [*self[key], *value]
            super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Several, strict=False)
    parser.optionxform = str
    parser.read_string((DEPLOY / "nearlabel.service").read_text(encoding="utf-8"))
    assert parser.sections() == ["Unit", "Service", "Install"]
    return {name: value.splitlines() for name, value in parser["Service"].items()}


def test_the_unit_starts_a_service_for_this_machine():
    settings = unit()
    program, *command = shlex.split(settings["ExecStart"][0])
    assert program == "/opt/nearlabel/bin/nearlabel"
    found = parsed(command)
    assert found["host"] == "127.0.0.1"
    assert found["token_file"] == "%d/token"
    assert settings["LoadCredential"] == ["token:/etc/nearlabel/token"]
    assert found["collection"].startswith(settings["ReadWritePaths"][0])
    assert int(settings["TimeoutStopSec"][0]) > server._LAST_SECONDS
    assert all(path in section("systemd") for path in ("/opt/nearlabel", "/etc/nearlabel/token"))


@pytest.mark.parametrize(
    "line",
    [
        "User=nearlabel",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectControlGroups=yes",
        "RestrictNamespaces=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "IPAddressDeny=any",
        "IPAddressAllow=localhost",
        "SystemCallFilter=@system-service",
    ],
)
def test_the_unit_restricts_the_service(line):
    name, _, value = line.partition("=")
    assert value in (unit()[name] or [""])


def test_systemd_accepts_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")
    text = (DEPLOY / "nearlabel.service").read_text(encoding="utf-8")
    (tmp_path / "nearlabel.service").write_text(
        text.replace("/opt/nearlabel/bin/nearlabel", "/usr/bin/env"), encoding="utf-8"
    )
    done = subprocess.run(
        [program, "verify", "--man=no", tmp_path / "nearlabel.service"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = [line for line in done.stderr.splitlines() if "nearlabel.service" in line]
    assert told == []


def instructions():
    """The instructions of the Containerfile, in order: (name, the rest)."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_the_image_serves_with_a_token_and_without_root():
    found = instructions()
    last = max(at for at, (name, _) in enumerate(found) if name == "FROM")
    assert found[last] == ("FROM", "python:3.13-slim")
    assert ("FROM", "python:3.13 AS build") in found
    final = dict(found[last:])
    assert final["USER"] == "10001:10001"
    assert final["VOLUME"] == "/data"
    assert json.loads(final["ENTRYPOINT"]) == ["nearlabel"]
    command = parsed(json.loads(final["CMD"]))
    assert command["host"] == "0.0.0.0"
    assert str(command["port"]) == final["EXPOSE"]
    assert command["token_file"].startswith("/data/")
    assert command["collection"].startswith("/data/")
    shown = section("A container")
    assert command["collection"] in shown
    assert command["token_file"] in shown


def test_what_the_image_copies_is_there():
    copied = [rest.split() for name, rest in instructions() if name == "COPY"]
    paths = [path for *some, _ in copied for path in some if not some[0].startswith("--from")]
    assert {"pyproject.toml", "setup.py", "src", "core"} <= {*paths}
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_health_check_of_the_image_calls_the_service(addresses):
    (check,) = [rest for name, rest in instructions() if name == "HEALTHCHECK"]
    program, option, code = json.loads(check.partition("CMD ")[2])
    assert (program, option) == ("python", "-c")
    assert f"{ADDRESS}/api/health" in code
    exec(code.replace(ADDRESS, addresses["pictures with a token"]), {})
    with pytest.raises(HTTPError):
        exec(code.replace(f"{ADDRESS}/api/health", f"{addresses['texts']}/api/none"), {})


def test_neither_this_machine_nor_a_registry_is_named():
    texts = [TEXT, *(path.read_text(encoding="utf-8") for path in DEPLOY.iterdir())]
    for text in texts:
        assert not re.search(r"/root\b|/work\b|/tmp/\w|pypi|index-url|docker\.io|ghcr|quay", text)
