"""Write down what is read out of the projects in this folder."""

import json
from pathlib import Path
from typing import Any

from ctx.code.packages.manifests import read_all

HERE = Path(__file__).parent
ECOSYSTEMS = ("cargo", "go", "maven", "npm", "python")


def paths(root: Path) -> list[str]:
    """The files of a project, from its root."""
    every = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(path.relative_to(root).as_posix() for path in every)


def described(root: Path) -> dict[str, Any]:
    """What is read out of a project, as it stands in the golden file."""
    found = read_all(str(root), paths(root))
    return {
        "packages": [
            {**each._asdict(), "targets": [list(target) for target in each.targets]}
            for each in found.packages
        ],
        "dependencies": [each._asdict() for each in found.dependencies],
        "problems": [list(each) for each in found.problems],
    }


def expected(ecosystem: str) -> Path:
    return HERE / f"{ecosystem}.json"


if __name__ == "__main__":
    for ecosystem in ECOSYSTEMS:
        text = json.dumps(described(HERE / ecosystem), indent=1, ensure_ascii=False)
        expected(ecosystem).write_text(f"{text}\n")
