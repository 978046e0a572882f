"""The documentation site: `make site` builds it offline into build/site; warnings are errors."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from sphinx.ext import autosummary

import nearlabel

project = "nearlabel"
author = "the nearlabel developers"
copyright = author  # noqa: A001 - the name that Sphinx asks for
release = version = nearlabel.__version__

extensions = [
    "_extensions.mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
nitpicky = False  # types in docstrings are plain words, not references

# Markdown as GitHub shows it.
myst_enable_extensions = ["dollarmath", "html_image"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
highlight_language = "none"
default_role = "literal"

# Docstrings in the style of scikit-learn.
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!page_screenshots)\w+\.py",  # it needs a browser
    "ignore_pattern": r"^(command_output|__init__)\.py",
    "reset_argv": "_extensions.gallery.arguments",
    "image_scrapers": ("_extensions.gallery.drawn",),
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "nearlabel"
html_static_path = ["_static", str(files("ziamath") / "fonts")]  # STIX Two, for formulas
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

# Pages outside of this folder, by the links to them in the Markdown files.
OUTSIDE = {
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../src/nearlabel/experiments/papers/published/README.md": "published_numbers.md",
}


def mend_links(_: Any, __: str, source: list[str]) -> None:
    """Redirect links to the pages that include others, with titles instead of file names."""
    for outside, page in OUTSIDE.items():
        source[0] = source[0].replace(f"]({outside}", f"]({page}")
    source[0] = re.sub(r"\[[\w./]+\.md\]\(([\w./]+\.md[^)]*)\)", r"[](\1)", source[0])


def summary(lines: list[str], document: Any, extract: Any = autosummary.extract_summary) -> str:
    """The first sentence of a docstring, without its references."""
    return re.sub(r"\s*\[\w+-\d+\]_", "", extract(lines, document))


def is_scikit_learns(*event: Any) -> bool | None:
    """Leave out members that scikit-learn documents."""
    member = event[3]
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app: Any) -> None:
    """Connect these functions to Sphinx."""
    autosummary.extract_summary = summary
    app.connect("source-read", mend_links)
    app.connect("autodoc-skip-member", is_scikit_learns)
