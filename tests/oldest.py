"""Print the oldest dependencies that pyproject.toml allows, as constraints for pip."""

import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for requirement in [
        *project["dependencies"],
        *extras["cli"],
        *extras["data"],
        *extras["report"],
        *extras["pictures"],
        *extras["photos"],
    ]:
        print(requirement.replace(">=", "=="))  # noqa: T201
