"""Programs that import a tool and run in its own interpreter, not in ours.

They read requests from stdin, one JSON object in a line, and answer each with a line.
"""
