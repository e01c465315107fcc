"""The command line: one file per command, loaded when it is named.

A command turns arguments into values for an operation and hands the answer to `output`. It
knows no SQL, no object format and no other command. Only `settings` reads the environment,
only `output` prints, and only `main` catches errors.
"""
