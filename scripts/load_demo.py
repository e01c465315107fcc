"""Loads `scripts/try`, which has no ending and so cannot be imported by its name."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any


def load_demo() -> Any:
    loader = SourceFileLoader("demo", str(Path(__file__).with_name("try")))
    spec = spec_from_loader("demo", loader)
    assert spec is not None
    demo = module_from_spec(spec)
    loader.exec_module(demo)
    return demo
