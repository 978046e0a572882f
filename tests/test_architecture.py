"""docs/architecture.md names existing files, and stays short."""

import re
from pathlib import Path

import pytest
from method_hooks import HOOKS

from nearlabel.methods.base import NeighborClassifier

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / name for name in ("architecture.md", "contracts.md", "choices.md")]
PATHS = r"`((?:src|core|tests|docs|benchmarks|examples)/[\w./-]+)`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_exists(page):
    text = page.read_text(encoding="utf-8")
    missing = [path for path in re.findall(PATHS, text) if not (ROOT / path).exists()]
    assert missing == []


def test_every_file_for_new_code_exists():
    """Its paths are below src/nearlabel, or below the folder of the file before, as in prose."""
    text = PAGES[0].read_text(encoding="utf-8").split("## Where new code belongs")[1]
    names = {path.name for path in (ROOT / "src/nearlabel").rglob("*.*")}
    paths = re.findall(r"`([\w./-]+(?:\.pyi?|\.js|/))`", text)
    assert len(paths) > 50
    for path in paths:
        exists = (ROOT / "src/nearlabel" / path).exists() or (ROOT / path).exists()
        assert exists or path in names, path


def test_the_page_is_read_in_five_minutes():
    assert len(PAGES[0].read_text(encoding="utf-8").split()) <= 1_420


def test_every_layer_hook_and_declaration_is_named():
    text = PAGES[0].read_text(encoding="utf-8")
    source = ROOT / "src/nearlabel"
    layers = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    modules = {path.name for path in source.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert modules == {"graph.py"}
    for name in (*layers, *modules, *HOOKS, "title", "needs", "settings", "stored"):
        assert f"`{name}" in text, name
    assert all(hasattr(NeighborClassifier, name) for name in HOOKS)


def test_names_of_files_say_one_thing():
    """No two modules of the package have the same name."""
    names = [path.stem for path in (ROOT / "src/nearlabel").rglob("*.py")]
    assert {name for name in names if names.count(name) > 1} == {"__init__"}
