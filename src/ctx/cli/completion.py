"""`ctx completion`"""

import argparse
import os
from typing import NamedTuple

from ctx.cli.output import Block, Output, VerbatimText
from ctx.cli.settings import Settings

EXAMPLES = """
ctx completion bash   put into ~/.bashrc: eval "$(ctx completion bash)"
ctx completion zsh    put into a folder of your fpath: ctx completion zsh > ~/.zfunc/_ctx
ctx completion fish   once: ctx completion fish > ~/.config/fish/completions/ctx.fish
"""

SHELLS = ("bash", "zsh", "fish")


class CompletionScript(NamedTuple):
    """What makes a shell complete the words of ctx."""

    shell: str
    script: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace, _settings: Settings, output: Output) -> None:
    output.show(CompletionScript(options.shell, script(options.shell)), render)


def script(shell: str) -> str:
    path = os.path.join(os.path.dirname(__file__), "shells", f"ctx.{shell}")
    with open(path, encoding="utf-8") as file:
        return file.read()


def render(made: CompletionScript) -> list[Block]:
    return [VerbatimText(made.script)]
