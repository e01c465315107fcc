"""The command line: one file per command, loaded when it is named.

A command turns arguments into values for an operation and hands the answer to `output`. It knows no
object format and no SQL (only `completion_candidates` has some, because it must be fast). Only
`settings` reads the environment, only `output` prints, and only `main` turns an error into a
message and an exit code.
"""
