"""The pages of the documentation: their code runs, links work, and all public names are listed."""

import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.cli import run
from nearlabel.cli.demo import write_songs

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md"))
    if "generated" not in path.parts
)
HOW_TOS = [path for path in PAGES if path.parent.name == "how_to"]
RUN = [
    *(path for path in PAGES if path.parent.name in ("how_to", "start")),
    ROOT / "README.md",
    ROOT / "docs/features.md",
]
NEEDS = {
    "cluster": "distributed",
    "features": "PIL",
    "photographs": "PIL",
    "service": "fastapi",
    "text": "polars",
}
FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SUBPACKAGES = ("collection", "datasets", "distributed", "experiments", "features", "metrics")


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.mark.filterwarnings("ignore:(?s)Port 8787 is already in use:UserWarning")  # by other tests
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", RUN, ids=relative)
def test_a_page_shows_the_output_of_its_code(monkeypatch, page):
    if module := NEEDS.get(page.stem):
        pytest.importorskip(module)
    if page.stem == "service" and not shutil.which("curl"):
        pytest.skip("needs curl")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NEARLABEL_DATA", "")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import command_output

    assert page in command_output.PAGES
    text = page.read_text(encoding="utf-8")
    assert command_output.with_output(text) == text


@pytest.mark.parametrize("page", HOW_TOS, ids=relative)
def test_all_code_of_a_how_to_runs(page):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for language, code in blocks:
        assert code.startswith({"python": ">>> ", "console": "$ "}[language])
    assert page.stem == "README" or blocks


def anchors(page):
    """The places of a page that links can lead to, as GitHub names them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_files_and_headings(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target, _, place = link.partition("#")
        if re.match(r"https?:", target):
            continue
        file = page.parent / target if target else page
        assert file.exists(), link
        if place:
            assert place in anchors(file), link


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/api/README.md").read_text(encoding="utf-8")
    listed = set()
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n\n.*?generated\n\n(.*?)```", text, re.DOTALL
    ):
        found = {f"{module}.{name}" for name in names.split()}
        assert not found & listed
        listed |= found
    public = {f"nearlabel.{name}" for name in nl.__all__} - {"nearlabel.__version__"}
    public -= {f"nearlabel.{name}" for name in SUBPACKAGES}
    for name in SUBPACKAGES:
        public |= {f"nearlabel.{name}.{each}" for each in getattr(nl, name).__all__}
    public.remove("nearlabel.experiments.GraphSearchCV")  # nl.GraphSearchCV
    module = "nearlabel.experiments.significance"
    public |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert listed == public


def test_the_readme_is_short_and_names_what_a_newcomer_needs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    install = re.search(r"## Install\n.*?```sh\n(.*?)```", text, re.DOTALL)[1]
    assert len(install.splitlines()) <= 5  # from a clone to a first prediction
    assert "nearlabel predict my.model new.csv" in install
    assert "`make demo`" in text
    assert "`make test`" in text


def test_the_commands_of_a_newcomer_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_songs()
    Path("songs.csv").rename("my.csv")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in re.findall(r"^nearlabel (.* my\..*?)  +#", text, re.MULTILINE):
        assert run(shlex.split(line)) == 0
    assert "song 601" in capsys.readouterr().out
