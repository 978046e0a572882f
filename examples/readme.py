"""Fill excerpts of the command line, in the README and on pictures, with what commands print.

Run it by `make docs`.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from pathlib import Path

from nearlabel.cli import run
from nearlabel.cli.demo import wrapped, write_songs

ROOT = Path(__file__).parents[1]
END = "```\n\n"
Excerpts = dict[str, tuple[str, ...]]
EXCERPTS: Excerpts = {
    "two commands": (
        "head -n 3 songs.csv",
        "nearlabel fit songs.csv -o songs.model --scale standard",
        "nearlabel rank songs.model new.csv --top 3",
    ),
    "more commands": (
        "nearlabel rank songs.model new.csv --top 1 --why | head -n 8",
        "nearlabel evaluate songs.csv --k 5 10 20 --scale standard "
        "--metric hamming_loss ranking_loss average_precision",
    ),
    "changes": (
        "nearlabel relabel songs.model --item 'song 017' --to calm sad",
        "nearlabel forget songs.model 'song 230' 'song 231' --compact --verify",
    ),
}
PICTURES: Excerpts = {
    "pictures": (
        "nearlabel datasets paint scenes --n 200",
        "nearlabel evaluate scenes --features moments --metric hamming_loss average_precision",
        "nearlabel fit scenes -o scenes.model --features moments",
    ),
    "new pictures": (
        "nearlabel datasets paint new --n 3 --seed 1",
        "nearlabel rank scenes.model new --top 3",
        "nearlabel rank scenes.model new/pictures/00000.jpg --top 1 --why | head -n 6",
    ),
}
DOCUMENTS = {"README.md": EXCERPTS, "docs/features.md": PICTURES}


def with_excerpts(text: str, excerpts: Excerpts) -> str:
    """A document with what its commands print, between the marks of each excerpt."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_songs()
        for name, commands in excerpts.items():
            mark = f"<!-- {name}: made by `make docs` -->\n"
            shown = "\n".join(f"$ {wrapped(command)}\n{printed(command)}" for command in commands)
            before, after = text.split(mark)
            text = f"{before}{mark}```\n{shown}{after[after.index(END) :]}"
    return text


def printed(command: str) -> str:
    """What a command prints."""
    first, _, most = command.partition(" | head -n ")
    program, *arguments = shlex.split(first)
    if program == "head":
        most, text = arguments[1], Path(arguments[-1]).read_text(encoding="utf-8")
    else:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert run(arguments) == 0
        text = output.getvalue()
    lines = text.splitlines(keepends=True)
    return "".join(lines[: int(most)] if most else lines)


if __name__ == "__main__":
    for document, excerpts in DOCUMENTS.items():
        path = ROOT / document
        made = with_excerpts(path.read_text(encoding="utf-8"), excerpts)
        path.write_text(made, encoding="utf-8")
        print(f"wrote the excerpts of {document}")
