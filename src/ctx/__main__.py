"""`python -m ctx` is the command `ctx`."""

from ctx.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
