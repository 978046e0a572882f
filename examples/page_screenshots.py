"""Screenshots of the page of a collection
=======================================

Take the screenshots of docs/service.md, with a collection of painted scenes. This example needs
Chromium, so it does not run with the other examples of the gallery.

Usage: ``python examples/page_screenshots.py FOLDER``
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from nearlabel.app.server import bound_socket, server_of
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.cli import run
from nearlabel.cli.demo import write_scenes
from nearlabel.collection import Collection

WIDE, PHONE = (1180, 760), (390, 760)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a collection in a thread, and yield its address."""
    begun = threading.Event()
    settings = ServiceSettings(uploads=folder.with_name("uploads"))
    with Collection(folder) as collection, bound_socket("127.0.0.1", 0) as listening:
        server = server_of(collection, settings, begun.set)
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        begun.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@contextmanager
def page(browser: Browser, size: tuple[int, int], scheme: str = "light") -> Iterator[Page]:
    """A page of a given size, in light or dark mode."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    yield context.new_page()
    context.close()


def shoot(page: Page, path: Path) -> None:
    """Take a screenshot in 256 colors, which has a third of the size."""
    image = Image.open(io.BytesIO(page.screenshot()))
    image.convert("RGB").quantize(256).save(path, optimize=True)


def take(browser: Browser, address: str, new: Path, target: Path) -> None:
    """Take all screenshots."""
    with page(browser, WIDE) as wide:
        for name, view in (
            ("page_grid", "/"),
            ("page_review", "/review"),
            ("page_one_tag", "/review?tag=sunset"),
        ):
            wide.goto(address + view)
            wide.wait_for_load_state("networkidle")
            shoot(wide, target / f"{name}.png")
        wide.goto(address)
        wide.set_input_files("#ask", new)
        wide.wait_for_selector("#groups-title")
        wide.wait_for_load_state("networkidle")
        wide.wait_for_timeout(200)
        shoot(wide, target / "page_answer.png")
    with page(browser, PHONE) as phone:
        phone.goto(address + "/review")
        phone.wait_for_load_state("networkidle")
        shoot(phone, target / "page_phone.png")
    with page(browser, WIDE, "dark") as dark:
        dark.goto(address + "/items/20")
        dark.wait_for_selector("#groups-title")
        dark.wait_for_load_state("networkidle")
        shoot(dark, target / "page_dark.png")


def main(target: Path) -> None:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("the screenshots need Chromium")
    with tempfile.TemporaryDirectory() as top, chdir(top):
        write_scenes()
        new = shutil.move("new/pictures/00301.jpg", "holiday.jpg")
        for command in (
            "index scenes/pictures -c scenes.nearlabel --tags scenes.csv",
            "index new/pictures -c scenes.nearlabel",
        ):
            if run(command.split()):
                sys.exit(1)
        with served(Path("scenes.nearlabel")) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"]
            )
            take(browser, address, Path(new), target)
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
