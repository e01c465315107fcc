"""The process `ctx`, and `python -m ctx`."""

import os

from ctx import interrupts


def main() -> int:
    """Run the command line. Signals are handled before the rest is loaded, which takes a while."""
    interrupts.install()
    # Fill the places of streams that were closed, or a file of ours would take one of them.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    from ctx.cli.main import main

    return main()


if __name__ == "__main__":
    raise SystemExit(main())
