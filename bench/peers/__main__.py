"""The command line of `python -m bench peers`."""

import argparse
import os
import signal
import sys
from datetime import UTC, datetime
from itertools import islice

from bench import conversations, localisation
from bench.peers import files, grep, hooks, installs, memory, offline

SHARES = {
    "hooks": (installs.CLAUDE_MEM,),
    "memory": (installs.BASIC_MEMORY, installs.MEM0),
    "files": (installs.AIDER,),
    "grep": (installs.RIPGREP,),
}


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench peers")
    parser.add_argument("shares", nargs="*", metavar="|".join(SHARES))
    parser.add_argument("--install", action="store_true", help="install what the shares need")
    parser.add_argument(
        "--python", action="append", default=[], help="a newer interpreter, for tools that need it"
    )
    parser.add_argument("--rounds", type=int, default=10, help="hooks, grep: runs of each")
    parser.add_argument("--locomo", help="memory: a file of LoCoMo")
    parser.add_argument("--beam", help="memory: a file of BEAM")
    parser.add_argument("--conversations", type=int, default=1, help="memory: how many of a file")
    parser.add_argument("--turns", type=int, default=200, help="memory: the first of each")
    parser.add_argument("--questions", type=int, default=50, help="memory: how many of each")
    parser.add_argument("--tasks", help="files: the tasks")
    parser.add_argument("--mirrors", help="files: a folder of git directories")
    parser.add_argument("--set", action="append", help="files: only this set")
    parser.add_argument("--repo", action="append", help="files: only this repository")
    parser.add_argument("--limit", type=int, default=40, help="files: number of tasks")
    parser.add_argument("--repository", help="grep: a git repository")
    return parser


def run(share: str, options: argparse.Namespace) -> None:
    print(f"\n== {share}", flush=True)
    match share:
        case "hooks":
            hooks.compare(options.rounds)
        case "memory" if options.locomo or options.beam:
            for name, path, read in (
                ("LoCoMo", options.locomo, conversations.locomo),
                ("BEAM", options.beam, conversations.beam),
            ):
                if path:
                    histories = islice(read(path), options.conversations)
                    cut = [memory.opening(each, options.turns) for each in histories]
                    command = f"python -m bench peers memory --{name.lower()} FILE"
                    command += f" --conversations {options.conversations} --turns {options.turns}"
                    command += f" --questions {options.questions}"
                    memory.compare(name, cut, options.questions, command)
        case "memory":
            print("  needs conversations: --locomo FILE, --beam FILE")
        case "files" if options.tasks and options.mirrors:
            every = localisation.read_tasks(options.tasks, options.mirrors)
            tasks = localisation.chosen_tasks(every, options)
            command = "python -m bench peers files --tasks TASKS --mirrors MIRRORS"
            command += f" --limit {options.limit}"
            command += "".join(f" --repo {name}" for name in options.repo or ())
            files.compare(tasks, os.path.abspath(options.mirrors), command)
        case "files":
            print("  needs tasks and git directories: --tasks FILE --mirrors FOLDER")
        case "grep" if options.repository:
            grep.compare(options.repository, options.rounds)
        case "grep":
            print("  needs a repository: --repository FOLDER")


def main() -> None:
    parser = arguments()
    options = parser.parse_args()
    shares = options.shares or list(SHARES)
    if unknown := set(shares) - SHARES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    peers = [peer for share in shares for peer in SHARES[share]]
    if options.install:
        for peer in peers:
            installs.install(peer, [sys.executable, *options.python])
            print(f"{peer.label} is in {peer.folder}")
        return
    if missing := [peer.label for peer in peers if not peer.is_installed]:
        print(f"  needs {', '.join(missing)}: python -m bench peers --install {' '.join(shares)}")
        return
    offline.leave_network("bench.peers", sys.argv[1:])
    # Ended by another process, it still ends the tools.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"{datetime.now(UTC):%Y-%m-%d}, {', '.join(peer.label for peer in peers)}")
    for share in shares:
        run(share, options)


if __name__ == "__main__":
    main()
