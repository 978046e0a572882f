"""The page in a real browser: headless Chromium against a served collection."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from served_collections import served

from nearlabel.collection import Collection, NewItem
from nearlabel.collection.indexing import plan_index, run_index
from nearlabel.collection.records import vector_content

MARKUP = "<img src=x onerror=alert(1)>"
COLORS = {"red": (200, 40, 40), "green": (40, 170, 60), "blue": (50, 70, 200)}
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
VIEWS = ("/", "/items/1", "/review", "/review?tag=red", "/tags", "/changes", "/settings")


def chromium() -> str:
    """The browser; tests are skipped without one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        if os.environ.get("NEARLABEL_REQUIRE_BROWSER"):
            raise AssertionError("Chromium is required here, and is not installed")
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield started
        started.close()


def painted(color, seed):
    """A small picture of one color with noise, as a JPEG file."""
    rng = np.random.default_rng(seed)
    pixels = np.clip(np.array(COLORS[color]) + rng.normal(0, 25, (48, 64, 3)), 0, 255)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of red, green and blue pictures, three of each with a tag, in a collection."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "files").mkdir()
    for number in range(27):
        color = [*COLORS][number % 3]
        (folder / "files" / f"{number:02d}-{color}.jpg").write_bytes(painted(color, number))
    with Collection.create(folder / "made", features="moments") as collection:
        plan = plan_index(collection, folder / "files")
        run_index(collection, plan)
        for number in range(9):
            collection.tag(number + 1, [*COLORS][number % 3])
    return folder


@pytest.fixture
def collection(pictures, tmp_path):
    """The address of a new copy of the collection, and a function that opens it."""
    shutil.copytree(pictures / "made", tmp_path / "photos.nearlabel")
    with served(tmp_path / "photos.nearlabel") as address:
        yield address


@contextmanager
def look(browser, address, refused="nothing is", asked=None, **options):
    """A page whose every request stays on this machine, without errors in its console.

    Errors that begin with `refused` are allowed: they are about responses of the service. Questions
    of dialogs are added to `asked` and confirmed; without this list there must be none.
    """
    wrong = []
    context = browser.new_context(base_url=address, **options)
    page = context.new_page()
    page.set_default_timeout(8000)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda line: (
            wrong.append(line.text)
            if line.type == "error" and not line.text.startswith(refused)
            else None
        ),
    )
    page.on(
        "request",
        lambda one: None if one.url.startswith((address, "blob:")) else wrong.append(one.url),
    )
    noted = wrong if asked is None else asked
    page.on("dialog", lambda dialog: (noted.append(dialog.message), dialog.accept()))
    yield page
    context.close()
    assert wrong == []


def suggested(page):
    """The tags that a page suggests, best first, with their probabilities in percent."""
    tags = page.locator(".suggested-tag").all_inner_texts()
    numbers = page.locator(".suggestion .number").all_inner_texts()
    return dict(zip(tags, numbers, strict=True))


def drop(page, *paths, kinds=("dragEnter", "dragOver", "drop")):
    """Drop files or folders on a page."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in kinds:
        place = {"type": kind, "x": 200, "y": 200}
        session.send("Input.dispatchDragEvent", {**place, "data": data})


def item(page, id):
    return page.request.get(f"/api/items/{id}").json()


def test_a_picture_is_dropped_kept_and_undone(browser, collection, tmp_path):
    (tmp_path / "new.jpg").write_bytes(painted("green", 100))
    (tmp_path / "other.jpg").write_bytes(painted("green", 101))
    with look(browser, collection) as page:
        page.goto("/")
        page.set_input_files("#ask", tmp_path / "new.jpg")
        page.wait_for_selector("#groups-title")
        assert next(iter(suggested(page))) == "green"
        assert page.locator("#own-preview").evaluate("image => image.naturalWidth") == 64
        voters = page.locator(".suggestion").first.locator(".near")
        assert voters.count() >= 1
        assert re.search(r"\d\.\d{3}", voters.first.inner_text())  # progress
        groups = page.locator("#near h3 a").all_inner_texts()
        assert groups[0] == "green"
        assert page.locator("#near .strip").first.locator("img").count() == 3
        assert page.request.get("/api/settings").json()["items"] == 27  # nothing is stored yet

        page.click("[aria-label='Accept green']")
        page.wait_for_url("**/items/28")
        page.wait_for_selector(".own .chip")
        assert page.locator(".own .chip a").all_inner_texts() == ["green"]
        assert "green" not in suggested(page)  # suggestions are shown separately
        assert item(page, 28)["accepted"] == ["green"]
        assert item(page, 28)["name"] == "new.jpg"

        page.fill(".give input", f"lawn; {MARKUP}")
        page.press(".give input", "Enter")
        page.wait_for_selector(".own .chip >> nth=2")
        assert page.locator(".own .chip a").all_inner_texts() == ["green", "lawn", MARKUP]
        assert page.locator("img[src=x]").count() == 0

        page.set_input_files("#ask", tmp_path / "other.jpg")  # the next answer has learned
        page.wait_for_selector("#own-preview")
        assert {"green", "lawn", MARKUP} <= {*suggested(page)}
        page.wait_for_selector("#groups-title")

        page.click("#undo")
        page.wait_for_function("() => !document.querySelector('[aria-label=\"Accept lawn\"]')")
        assert "lawn" not in suggested(page)
        assert item(page, 28)["tags"] == ["green"]


def test_pictures_are_dropped_and_pasted_and_known_ones_recognized(browser, collection, pictures):
    known = (pictures / "files" / "04-green.jpg").read_bytes()
    put = """([selector, kind, content, name]) => {
        const bytes = Uint8Array.from(atob(content), (mark) => mark.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], name, { type: "image/jpeg" }));
        const target = document.querySelector(selector);
        const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
        const key = kind === "paste" ? "clipboardData" : "dataTransfer";
        target.dispatchEvent(new Kind(kind, { [key]: data, bubbles: true, cancelable: true }));
    }"""
    with look(browser, collection) as page:
        page.goto("/")
        content = base64.b64encode(painted("blue", 200)).decode()
        page.evaluate(put, ["main", "dragenter", content, "dropped.jpg"])
        assert page.locator("#drop").is_visible()
        page.evaluate(put, ["main", "drop", content, "dropped.jpg"])
        page.wait_for_selector("h1:has-text('dropped.jpg')")
        assert not page.locator("#drop").is_visible()
        assert next(iter(suggested(page))) == "blue"
        page.evaluate(put, ["main", "paste", base64.b64encode(known).decode(), "image.png"])
        page.wait_for_url("**/items/5")
        page.wait_for_selector("#groups-title")
        assert page.locator("h1").inner_text() == "04-green.jpg"
        page.go_back()
        page.wait_for_selector("section.page .tile")


def test_several_files_are_asked_about_in_turn(browser, collection, tmp_path):
    (tmp_path / "trip").mkdir()
    for number, name in enumerate(("a.jpg", "c.jpg", "trip/1.jpg", "trip/2.jpg")):
        (tmp_path / name).write_bytes(painted("green", 300 + number))
    (tmp_path / "b.jpg").write_bytes(b"<html><script>alert(1)</script>")
    for name in ("d.txt", "trip/3.txt"):
        (tmp_path / name).write_text("no picture", encoding="utf-8")
    with look(browser, collection, "Failed to load") as page:

        def shown(name, place):
            page.wait_for_selector(f"h1:has-text('{name}')")
            page.wait_for_selector(f".several strong:text-is('{place}')")
            page.wait_for_selector("#groups-title")

        sent = []
        page.on("request", lambda one: sent.append((one.method, one.url.removeprefix(collection))))
        page.goto("/")
        drop(page, *(tmp_path / name for name in ("a.jpg", "b.jpg", "c.jpg", "d.txt")))
        shown("a.jpg", "1 of 3")
        assert page.locator("#message").inner_text() == "1 of 4 files is not a picture."
        page.evaluate(
            "() => ['Accept green', 'Reject red'].forEach((one) => "
            "document.querySelector(`[aria-label='${one}']`).click())"
        )  # faster than the answers
        page.wait_for_selector(".rejected")
        assert page.locator(".own .chip bdi").all_inner_texts() == ["green", "red"]
        shown("a.jpg", "1 of 3")
        assert sent.count(("POST", "/api/items")) == 1  # they waited for each other
        page.keyboard.press("ArrowRight")
        shown("c.jpg", "2 of 2")
        said = page.locator("#message").inner_text()
        assert said == "b.jpg: The file is not a picture in a known format."
        page.click("text=← Previous")
        page.wait_for_url("**/items/28")  # it was kept
        page.click("text=Stop")
        page.wait_for_selector("section.page .tile")

        drop(page, tmp_path / "trip")
        shown("1.jpg", "1 of 2")
        page.locator(".skip").focus()
        page.keyboard.press("Enter")  # and it is still asked about
        page.click("text=Next →")
        shown("2.jpg", "2 of 2")
        assert page.locator("#own-preview").count() == 1
        page.click("text=Done")
        page.wait_for_selector("section.page .tile")
        tile = page.locator(".tile img").first
        for event, is_own in (("dragstart", True), ("dragend", False)):
            tile.dispatch_event(event)  # a picture of the page itself is dragged, or nothing
            drop(page, tmp_path / "c.jpg", kinds=["dragEnter", "dragOver"])
            assert page.locator("#drop").is_hidden() == is_own
        page.wait_for_selector("#drop", state="hidden")  # animations are disabled


def test_slow_and_missing_responses(browser, collection):
    with look(browser, collection, "Failed to load") as page:
        page.goto("/items/10")
        page.wait_for_selector("#groups-title")
        held = []
        page.route("**/api/items/10/tags", lambda route: held.append(route))
        page.click("[aria-label^=Accept] >> nth=0")
        page.fill(".give input", "half a word")
        page.wait_for_timeout(50)
        held[0].continue_()
        page.wait_for_selector(".own .chip")
        assert page.input_value(".give input") == "half a word"
        assert page.evaluate("document.activeElement.name") == "tags"

        page.route("**/near", lambda route: route.abort())
        page.goto("/items/11")
        with page.expect_event("requestfailed"):  # before requests pass again
            page.click("#near >> text=Try again")
        page.unroute("**/near")
        page.click("#near >> text=Try again")
        page.wait_for_selector("#groups-title")

        page.goto("/review")
        first = page.evaluate("document.activeElement.dataset.id")
        page.context.set_offline(True)
        page.keyboard.press("n")
        page.wait_for_selector("#message .failed")
        assert "does not answer" in page.locator("#message").inner_text()
        page.context.set_offline(False)
        busy = {"status": 503, "content_type": "text/plain", "body": "Service Unavailable"}
        page.route("**/api/answers", lambda route: route.fulfill(**busy))
        page.keyboard.press("n")
        page.wait_for_selector("text=The service answered 503.")
        page.unroute("**/api/answers")
        assert item(page, first)["no"] == []
        page.keyboard.press("n")  # the question is still there
        page.wait_for_selector("#answered:has-text('1 answered')")
        assert len(item(page, first)["no"]) == 3


def test_a_refused_tag_does_not_store_the_picture(browser, collection, tmp_path):
    (tmp_path / "new.jpg").write_bytes(painted("green", 100))
    with look(browser, collection, "Failed to load") as page:
        page.goto("/tags")
        page.set_input_files("#ask", tmp_path / "new.jpg")
        page.wait_for_selector("#groups-title")
        page.fill(".give input", "a|")
        page.press(".give input", "Enter")
        page.wait_for_selector("#message .failed")
        assert page.request.get("/api/settings").json()["items"] == 27
        page.fill(".give input", "lawn")
        page.press(".give input", "Enter")
        page.wait_for_selector(".own .chip")
        page.click("#undo")  # the picture and its tag came together
        page.wait_for_selector("section.page .tile")
        assert "Taken back" in page.locator("#message").inner_text()
        assert page.request.get("/api/settings").json()["items"] == 27


def test_undo_in_a_window_that_is_out_of_date_asks_again(browser, collection):
    with look(browser, collection, "Failed to load") as page:
        page.goto("/")
        page.request.post("/api/items/1/tags", data={"tags": ["elsewhere"]})
        page.click("#undo")
        page.wait_for_selector("#message .failed")
        said = page.locator("#message").inner_text()
        assert "a later change by now (elsewhere added to 1 item)" in said
        assert "elsewhere" in item(page, 1)["tags"]
        page.click("#undo")
        page.wait_for_selector("#message p:not(.failed)")
        assert "elsewhere" not in item(page, 1)["tags"]


def test_missing_pages_show_an_error(browser, collection):
    with look(browser, collection, "Failed to load") as page:
        page.goto("/items/999")
        assert page.locator(".error").inner_text() == "The collection has no item 999."
        page.click("text=Go to the collection")
        page.wait_for_selector(".tile")
        page.goto("/items/2")
        page.click("text=Next")
        page.wait_for_url("**/items/3")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**/items/2")


def test_questions_are_answered_by_keys_alone(browser, collection):
    with look(browser, collection) as page:
        page.goto("/review")

        def current():
            return int(page.evaluate("document.activeElement.dataset.id"))

        def answered(number):
            page.wait_for_function(
                "n => document.querySelector('#answered').textContent.startsWith(n)",
                arg=f"{number} ",
            )

        first = current()
        marks = page.locator(f".question[data-id='{first}'] .mark")
        best = marks.first.get_attribute("data-tag")
        assert marks.first.get_attribute("aria-pressed") == "true"
        page.keyboard.press("Enter")
        answered(1)
        found = item(page, first)
        assert found["accepted"] == [best]
        assert len(found["no"]) == 2  # the others are rejected, and that is remembered

        second = current()
        assert second != first
        for key in "123":  # in the end the third is marked, whatever was marked before
            mark = page.locator(f".question[data-id='{second}'] .mark").nth(int(key) - 1)
            if (mark.get_attribute("aria-pressed") == "true") != (key == "3"):
                page.keyboard.press(key)
        third_tag = page.locator(f".question[data-id='{second}'] .mark").nth(2).inner_text()
        page.keyboard.press("t")
        page.keyboard.type("night; sky")
        page.keyboard.press("Enter")
        answered(2)
        found = item(page, second)
        assert {"night", "sky"} < {*found["tags"]}
        assert found["accepted"][0] in third_tag

        third = current()
        page.keyboard.down("n")
        answered(3)
        page.keyboard.down("n")  # the key is held, which must not answer the next question
        page.keyboard.up("n")
        assert item(page, third)["tags"] == []
        assert {"red", "green", "blue"} <= {*item(page, third)["no"]}

        page.keyboard.press("u")
        page.wait_for_function("id => document.activeElement.dataset.id === id", arg=str(third))
        assert item(page, third)["no"] == []
        page.keyboard.press("s")
        assert current() != third
        page.keyboard.press("x")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        both = page.locator(".question:has(.select :checked)")
        ids = [int(one.get_attribute("data-id")) for one in both.all()]
        assert len(ids) == 2
        page.click("#selection [data-many=accept]")
        answered(4)
        assert all(item(page, id)["tags"] for id in ids)
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible()


def test_review_of_one_tag_ends_after_many_noes(browser, collection):
    with look(browser, collection) as page:
        page.goto("/tags")
        page.click("tr:has-text('red') >> text=Find more")
        page.wait_for_selector(".question")
        chances = [
            float(one.get_attribute("data-probability")) for one in page.locator(".question").all()
        ]
        assert chances == sorted(chances, reverse=True)
        likely = [one for one in chances if one >= 0.5]
        assert likely
        page.click("[data-select=likely]")
        assert page.locator(".selected-count").inner_text() == f"{len(likely)} selected"
        page.click("#selection [data-many=accept]")
        page.wait_for_function("() => document.querySelector('#answered').textContent")
        red = page.request.get("/api/items?tag=red").json()["items"]
        assert len(red) == 3 + len(likely)
        assert all("red" in one["name"] for one in red)
        page.locator(".question").first.focus()
        for number in range(8):
            assert not page.locator(".poor").is_visible(), number
            page.keyboard.press("n")
            page.wait_for_function(
                "n => document.querySelector('#answered').textContent.startsWith(n)",
                arg=f"{len(likely) + number + 1} ",
            )
        page.wait_for_selector(".poor", state="visible")
        page.click("#go-on")
        assert page.locator(".question").first.is_visible()


def test_tags_are_renamed_merged_and_deleted(browser, collection):
    asked = []
    with look(browser, collection, asked=asked) as page:
        page.goto("/tags")
        row = page.locator("tr:has(bdi:text-is('red'))")
        row.locator("summary").click()
        row.locator("input[name=new]").fill("crimson")
        row.locator("text=Rename >> nth=-1").click()
        page.wait_for_selector("bdi:text-is('crimson')")
        for name in ("crimson", "blue"):
            page.check(f"tr:has(bdi:text-is('{name}')) input[type=checkbox]")
        page.fill("#selection [name=into]", "cool")
        page.click("#selection .primary")
        page.wait_for_selector("bdi:text-is('cool')")
        assert page.locator("tbody th").all_inner_texts() == ["cool", "green"]
        page.click("bdi:text-is('cool')")
        page.wait_for_selector(".tile")
        assert page.locator(".tile").count() == 6
        page.goto("/tags")
        page.click("#undo")
        page.wait_for_selector("bdi:text-is('crimson')")
        page.click("tr:has(bdi:text-is('blue')) >> text=Delete")
        page.wait_for_selector("#message:has-text('deleted blue (3 items)')")
        assert asked == ["Delete the tag blue? 3 items have it. Undo brings it back."]
        page.request.post("/api/tags/rename", data={"old": "crimson", "new": "\u200b"})
        page.reload()
        assert {*page.locator("tbody th").all_inner_texts()} == {"green", "⟨U+200B⟩"}


def test_the_grid_is_searched_filtered_and_tagged_in_bulk(browser, collection):
    with look(browser, collection) as page:
        page.goto("/")
        assert page.locator(".tile").count() == 27
        page.fill("#search", "blue")
        page.press("#search", "Enter")
        page.wait_for_url("**/?tag=blue*")
        assert page.locator(".tile").count() == 3
        page.goto("/?state=untagged")
        assert page.locator(".tile").count() == 18
        page.locator(".tile a.picture").first.focus()
        page.keyboard.press("x")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        page.fill("#selection [name=tags]", f"{MARKUP}; new")
        page.press("#selection [name=tags]", "Enter")
        page.wait_for_function("() => document.querySelectorAll('.tile').length === 16")
        assert not page.locator("#selection").is_visible()  # those two are no longer shown
        page.goto("/?tag=new")
        assert page.locator(".tile").count() == 2
        assert page.locator(".tile .chip").first.inner_text() == MARKUP
        page.click("#undo")
        page.wait_for_selector("text=has no tag")


def test_a_long_grid_keeps_only_near_tiles(browser, tmp_path):
    with Collection.create(tmp_path / "many", kind="vectors") as many:
        vectors = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
        many.add(
            [NewItem(vector_content(f"{n}", v), v, name=f"{n}") for n, v in enumerate(vectors)]
        )
    with served(tmp_path / "many") as address, look(browser, address) as page:
        page.goto("/")
        for _ in range(60):
            page.mouse.wheel(0, 4000)
            page.wait_for_timeout(40)
            if page.locator("[data-id='1500']").count():
                break
        assert page.locator("[data-id='1500']").count() == 1
        assert page.locator(".tile").count() < 800  # of 1,500
        page.locator("[data-id='1500'] a.picture").click()
        page.wait_for_url("**/items/1500")
        page.go_back()
        page.wait_for_selector("[data-id='1500']")  # where it was left
        assert page.locator("[data-id='1']").count() == 0 or page.evaluate("scrollY") > 9000
        page.keyboard.press("Home")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_selector("[data-id='1']")


def test_views_are_accessible_on_a_phone_and_in_the_dark(browser, collection):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    phone = {"width": 320, "height": 640}
    with look(browser, collection, viewport=phone) as page:
        for view in VIEWS:
            page.emulate_media(color_scheme="light")
            page.goto(view)
            if view.startswith("/items"):
                page.wait_for_selector("#groups-title")
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 320, f"{view} is {width} wide"
            assert serious(axe.run(page)) == [], view
            page.emulate_media(color_scheme="dark")  # only the colors differ
            colors = axe.run(page, options={"runOnly": ["color-contrast"]})
            assert serious(colors) == [], view
            ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 200
        page.emulate_media(media="print", color_scheme="dark")  # paper is white
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == "rgb(255, 255, 255)"


def serious(results):
    """The violations found by axe, without minor ones."""
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in results.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def test_texts_and_vectors_are_plain_lists(browser, tmp_path):
    (tmp_path / "notes").mkdir()
    for number, words in enumerate(("tea and cake", "tea with milk", "engine oil", "engine parts")):
        (tmp_path / "notes" / f"{number}.txt").write_text(f"{words}\n{MARKUP}", encoding="utf-8")
    with Collection.create(tmp_path / "texts", kind="texts") as texts:
        run_index(texts, plan_index(texts, tmp_path / "notes"))
        texts.tag([1], "drink")
        texts.tag([3], "machine")
    with served(tmp_path / "texts") as address, look(browser, address) as page:
        page.goto("/")
        assert page.locator(".list .tile").count() == 4
        assert page.locator("#ask").count() == 0
        page.click("text=tea with milk")
        page.wait_for_selector("#groups-title")
        assert MARKUP in page.locator(".text").inner_text()
        assert next(iter(suggested(page))) == "drink"
        page.click("#ask-about")
        page.fill("#ask-text textarea", "oil for the engine")
        page.click("#ask-text .primary")
        page.wait_for_selector("#own-text:has-text('oil')")
        assert next(iter(suggested(page))) == "machine"
        page.click("[aria-label='Accept machine']")
        page.wait_for_selector(".own .chip")
        assert item(page, 5)["tags"] == ["machine"]
        (tmp_path / "dropped.txt").write_text("milk for the tea", encoding="utf-8")
        drop(page, tmp_path / "dropped.txt")
        page.wait_for_selector("#own-text:has-text('milk for the tea')")
        page.click("[aria-label='Accept drink']")
        page.wait_for_url("**/items/6")
        assert item(page, 6)["name"] == "dropped.txt"


def test_a_token_opens_the_page(browser, pictures, tmp_path):
    shutil.copytree(pictures / "made", tmp_path / "photos")
    token = "open sesame, and then some".replace(" ", "-")
    with (
        served(tmp_path / "photos", token=token) as address,
        browser.new_context(base_url=address) as context,
    ):
        page = context.new_page()
        page.goto("/tags")
        page.wait_for_url("**/login*")
        page.fill("[name=token]", "wrong")
        page.click("text=Open")
        page.wait_for_selector("[role=alert]")
        page.fill("[name=token]", token)
        page.click("text=Open")
        page.wait_for_url("**/tags")
        (cookie,) = context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert token not in cookie["value"]
        page.goto("/?state=untagged")
        context.clear_cookies()  # as after a month
        (tmp_path / "new.jpg").write_bytes(painted("green", 100))
        page.set_input_files("#ask", tmp_path / "new.jpg")
        page.wait_for_url("**/login?next=*state*untagged")


def test_the_method_is_chosen_on_the_page(browser, collection):
    with look(browser, collection) as page:
        page.goto("/items/10")
        before = suggested(page)
        page.goto("/settings")
        page.select_option("[name=method]", "BRkNN")
        page.fill("[name=n_neighbors]", "2")
        page.click("form.settings .primary")
        page.wait_for_selector("#message p")
        assert page.request.get("/api/settings").json()["method"] == "BRkNN"
        page.goto("/items/10")
        assert suggested(page) != before


def test_pages_show_everything_without_the_script(browser, collection):
    with look(browser, collection, java_script_enabled=False) as page:
        page.goto("/items/10")
        assert [*suggested(page)]
        page.goto("/")
        assert page.locator(".tile").count() == 27


def test_static_files_are_small():
    static = Path(__file__).parents[2] / "src/nearlabel/app/static"
    assert sum(path.stat().st_size for path in static.iterdir()) < 60_000
