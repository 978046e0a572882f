"""Run the code of pages, and fill their ``console`` blocks with the output of the commands.

`make docs` runs it. The tests compare the pages with its output.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearlabel.cli import run
from nearlabel.cli.demo import write_songs

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/features.md",
    *sorted((ROOT / "docs/start").glob("*.md")),
    *sorted((ROOT / "docs/how_to").glob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
PORT = "8350"  # in the pages; any free port is used instead


def with_output(text: str) -> str:
    """A page with the current output of its commands; its doctests are run and must pass.

    The blocks of a page run one after the other in a new folder, which has the files of
    `nearlabel demo songs`. In the output of a command, `…` stands for anything, such as a time.
    """
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), Shell() as shell:
        write_songs()

        def shown(block: re.Match[str]) -> str:
            language, code = block.groups()
            if language == "python":
                check(code, names)
            elif language == "console":
                _, *parts = COMMAND.split(code)
                pairs = zip(parts[::2], parts[1::2], strict=True)
                code = "\n".join(f"$ {each}\n{shell.shown(each, was)}" for each, was in pairs)
            return f"```{language}\n{code}```"

        return BLOCK.sub(shown, text)


def check(code: str, names: dict[str, Any]) -> None:
    """Run the doctests of a block, with the variables of the blocks before it."""
    test = doctest.DocTestParser().get_doctest(code, names, "page", None, 0)
    test.globs = names  # get_doctest copies its argument
    doctest.DebugRunner().run(test, clear_globs=False)


class Shell(contextlib.ExitStack):
    """Runs the commands of a page: `nearlabel`, `head`, `cat` and `curl`, also in a pipe."""

    port = PORT

    def shown(self, command: str, before: str) -> str:
        """The output of a command for a page: the old text if that matches, with its `…`."""
        printed, before = self.printed(command), before.rstrip("\n") + "\n"
        pattern = ".*".join(map(re.escape, before.split("…")))
        return before if re.fullmatch(pattern, printed, re.DOTALL) else printed

    def printed(self, command: str) -> str:
        """The output of a command."""
        first, _, most = re.sub(r"\\\n\s*", "", command).partition(" | head -n ")
        program, *arguments = shlex.split(first.replace(PORT, self.port))
        if program == "nearlabel" and arguments[-1] == "&":
            self.enter_context(self.serving(arguments[:-1]))
            return ""
        lines = self.output(program, arguments).splitlines(keepends=True)
        text = "".join(lines[: int(most)] if most else lines).replace(self.port, PORT)
        return text if text.endswith("\n") or not text else f"{text}\n"

    def output(self, program: str, arguments: list[str]) -> str:
        """The standard output of a program."""
        match program, arguments:
            case "nearlabel", _:
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    if run(arguments):
                        raise RuntimeError(f"nearlabel {shlex.join(arguments)} failed")
                return output.getvalue()
            case "head", ["-n", count, path]:
                return "".join(Path(path).read_text("utf-8").splitlines(True)[: int(count)])
            case "cat", [path]:
                return Path(path).read_text("utf-8")
            case "curl", _:
                return subprocess.check_output([program, *arguments], text=True)
        raise ValueError(f"pages cannot run {program!r}")

    @contextlib.contextmanager
    def serving(self, arguments: list[str]) -> Iterator[None]:
        """Start a service that runs until the end of the page, and read its address."""
        free = ["0" if each == PORT else each for each in (*arguments, "--port", PORT)]
        with subprocess.Popen(
            [sys.executable, "-m", "nearlabel", *free], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            address = re.search(r"http://[\d.]+:(\d+)", process.stdout.readline())
            assert address
            self.port = address[1]
            yield
            process.terminate()


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_output(page.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote the output of commands in {page.relative_to(ROOT)}")
