"""Installing ctx for a host: what is the same for all of them.

    edited_file    a file of another program, edited in place
    jsonc          JSON with comments; inserts and removes elements in place
    settings_file  hooks in a settings file; touches only our own
    program_runs   runs a program with a time limit
    skill          the pages that teach an agent to use its memory

The files of a host belong to the user: everything that ctx writes there is recognizable and can be
removed without a trace.
"""
