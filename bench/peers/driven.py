"""A tool in an interpreter of its own, driven by lines of JSON."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.peers import processes
from bench.peers.installs import Peer
from bench.timing import Cost

DRIVERS = Path(__file__).with_name("drivers")


class Answer(NamedTuple):
    cost: Cost
    found: Any


class Driven:
    def __init__(self, name: str, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._name, self._process, self._errors = name, process, errors

    def ask(self, **request: Any) -> Answer:
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        try:
            asking.write(json.dumps(request) + "\n")
            asking.flush()
            line = answering.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            last = self._errors.read_text(errors="replace").strip()[-2_000:]
            raise SystemExit(f"{self._name} ended:\n{last}")
        answer = json.loads(line)
        return Answer(Cost(answer["cpu"], answer["wall"]), answer["found"])


@contextmanager
def driven(peer: Peer, driver: str, home: Path, more: Mapping[str, str]) -> Iterator[Driven]:
    """Start the driver with a HOME; it ends when its stdin is closed."""
    errors = home / "driver.log"
    command = [peer.python, str(DRIVERS / driver)]
    with (
        errors.open("w") as log,
        subprocess.Popen(
            command, env=processes.environment(home, peer.bin, **more), cwd=home, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        ) as process,
    ):  # fmt: skip
        try:
            yield Driven(peer.label, process, errors)
        finally:
            process.kill()
