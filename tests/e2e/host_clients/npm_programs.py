"""Programs of other hosts from npm, which `make clients` installs under `.cache`."""

from pathlib import Path

from tests import installed

CACHE = Path(__file__).parents[3] / ".cache"
COPILOT = "1.0.102"
OPENCODE = "1.18.18"
QWEN = "0.24.4"
NODE = "22.23.3"
CODEX = "0.166.0"
GEMINI = "0.61.0"


def copilot() -> tuple[str, ...]:
    modules = CACHE / f"copilot-{COPILOT}" / "node_modules"
    return _program(f"Copilot CLI {COPILOT}", modules / ".bin" / "copilot")


def opencode() -> tuple[str, ...]:
    """The build for this machine. The package's own script would look for it."""
    modules = CACHE / f"opencode-{OPENCODE}" / "node_modules"
    builds = sorted(modules.glob("opencode-*-*/bin/opencode"))
    # Where there are several, the baseline build runs on every processor.
    named = [build for build in builds if "baseline" in str(build)] or builds or [modules]
    return _program(f"OpenCode {OPENCODE}", named[0])


def qwen() -> tuple[str, ...]:
    """It needs a newer Node than many machines have."""
    nodes = sorted((CACHE / f"node-{NODE}" / "node_modules").glob("node-*-*/bin/node"))
    package = CACHE / f"qwen-{QWEN}" / "node_modules" / "@qwen-code" / "qwen-code"
    return (
        *_program(f"Qwen Code {QWEN}", nodes[0] if nodes else CACHE),
        *_program(f"Qwen Code {QWEN}", package / "cli.js"),
    )


def codex() -> tuple[str, ...]:
    """The build for this machine, without the script that looks for it."""
    modules = CACHE / f"codex-{CODEX}" / "node_modules" / "@openai"
    builds = sorted(modules.glob("codex-*/vendor/*/bin/codex")) or [modules]
    return _program(f"Codex {CODEX}", builds[0])


def gemini() -> tuple[str, ...]:
    modules = CACHE / f"gemini-{GEMINI}" / "node_modules"
    path = _program(f"Gemini CLI {GEMINI}", modules / "@google/gemini-cli/bundle/gemini.js")
    return (installed.program("node"), *path)


def _program(name: str, path: Path) -> tuple[str, ...]:
    if not path.is_file():
        installed.skip_without(name)
    return (str(path),)
