"""Fill the README's excerpts of the command line with what the commands print.

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

README = Path(__file__).parents[1] / "README.md"
END = "```\n\n"
EXCERPTS = {
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


def with_excerpts(readme: str) -> str:
    """The README with what its commands print, between the marks of each excerpt."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_songs()
        for name, commands in EXCERPTS.items():
            mark = f"<!-- {name}: made by `make docs` -->\n"
            text = "\n".join(f"$ {wrapped(command)}\n{printed(command)}" for command in commands)
            before, after = readme.split(mark)
            readme = f"{before}{mark}```\n{text}{after[after.index(END) :]}"
    return readme


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
    README.write_text(with_excerpts(README.read_text(encoding="utf-8")), encoding="utf-8")
    print("wrote the excerpts of README.md")
