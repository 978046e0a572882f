"""What does the page of a large collection transfer, and does memory stay constant in scrolling?

Usage: python page.py [--items N]

Needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import MIB, report
from PIL import Image
from service import served

from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.folder_checks import thumbnail_path
from nearlabel.datasets import paint_scenes

QUESTION = (
    "the page of a collection of pictures in headless Chromium on the same machine: its first "
    "view, and scrolling through all items"
)
ITEMS, D = 100_000, 294
BATCH = 10_000
PAINTED = 200  # pictures that all thumbnails are copies of
TAGS = ("sea", "sunset", "trees", "mountains", "desert")
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)  # of the scrolling, after which memory is measured
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)


def made(folder: Path, n: int) -> None:
    """A collection of n pictures, half of them tagged, with thumbnails but without files."""
    scenes = paint_scenes(PAINTED)
    small = folder.with_name("small")
    small.mkdir()
    for number, picture in enumerate(scenes.pictures):
        Image.fromarray(picture).save(small / f"{number}.jpg", quality=85)
    random = np.random.default_rng(0)
    with Collection.create(folder, features="moments") as store:
        for start in range(0, n, BATCH):
            numbers = range(start, min(start + BATCH, n))
            items = []
            for number, vector in zip(numbers, random.normal(size=(len(numbers), D)), strict=True):
                content = hashlib.sha256(str(number).encode()).digest()
                file = FileState("/photos", f"{number:06d}.jpg", 1, 1)
                items.append(NewItem(content, vector.astype(np.float32), (file,)))
                kept = thumbnail_path(folder, content)
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.link(small / f"{number % PAINTED}.jpg", kept)
            ids = store.add(items)
            store.decide([(id, TAGS[id % len(TAGS)], True) for id in ids[::2]])


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """A page of a browser with empty caches."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        sys.exit("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        page = browser.new_context(
            base_url=address, viewport={"width": 1280, "height": 900}
        ).new_page()
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def first_view(address: str) -> list[dict[str, Any]]:
    """What is transferred for the first view, and when it is painted."""
    paints, sizes = [], {}
    for _ in range(5):
        with opened(address) as page:
            urls: dict[str, str] = {}
            received: dict[str, int] = {}
            session = page.context.new_cdp_session(page)
            session.send("Network.enable")
            session.on("Network.responseReceived", partial(_note_url, urls))
            session.on("Network.loadingFinished", partial(_note_size, received))
            page.goto("/")
            page.wait_for_load_state("networkidle")
            painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            paints.append(page.evaluate(painted))
            small = {one for one, url in urls.items() if "/thumbnails/" in url}
            sizes["thumbnails"] = sum(received[one] for one in received.keys() & small)
            sizes["all else"] = sum(received[one] for one in received.keys() - small)
    return [
        {
            "what": "first view",
            "first_paint_ms": round(float(np.median(paints)), 1),
            "first_paint_ms_worst": round(max(paints), 1),
            "kb_without_thumbnails": round(sizes["all else"] / 1000, 1),
            "kb_of_thumbnails": round(sizes["thumbnails"] / 1000, 1),
        }
    ]


def _note_url(urls: dict[str, str], event: Any) -> None:
    urls[event["requestId"]] = event["response"]["url"]


def _note_size(received: dict[str, int], event: Any) -> None:
    received[event["requestId"]] = int(event["encodedDataLength"])


def scrolled(address: str, n: int) -> list[dict[str, Any]]:
    """Memory of the page and its server while scrolling through all items."""
    rows: list[dict[str, Any]] = []
    with opened(address) as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        page.goto("/")
        page.wait_for_load_state("networkidle")
        begin, waiting = time.monotonic(), [*SHARES]
        while waiting:
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.wait_for_timeout(30)
            last = page.evaluate(
                "Number([...document.querySelectorAll('.tile')].at(-1)?.dataset.id ?? 0)"
            )
            if last < waiting[0] * n:
                continue
            session.send("HeapProfiler.collectGarbage")
            found = session.send("Performance.getMetrics")["metrics"]
            figures = {one["name"]: one["value"] for one in found}
            rows.append(
                {
                    "what": "scrolled",
                    "share": waiting.pop(0),
                    "heap_mib": round(figures["JSHeapUsedSize"] / MIB, 2),
                    "nodes": int(figures["Nodes"]),
                    "tiles": page.locator(".tile").count(),
                    "seconds": round(time.monotonic() - begin, 1),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS)
    n = parser.parse_args().items
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top, "photos")
        made(folder, n)
        with served(folder) as server:
            address = f"http://127.0.0.1:{server.port}"
            rows = first_view(address) + scrolled(address, n)
    report(QUESTION, [{**row, "items": n} for row in rows])


if __name__ == "__main__":
    main()
