"""Programs of other hosts from npm, which `make clients` installs under `.cache`."""

from pathlib import Path

from tests import installed

CACHE = Path(__file__).parents[3] / ".cache"
COPILOT = "1.0.102"
OPENCODE = "1.18.18"


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


def _program(name: str, path: Path) -> tuple[str, ...]:
    if not path.is_file():
        installed.skip_without(name)
    return (str(path),)
