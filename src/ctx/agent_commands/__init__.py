"""Commands of an agent: `<ctx:…>` in an answer, read and done once.

    commands, markup    what an answer asks of memory
    prose, quotations   which of it the agent says itself, and what it only quotes
    exactly_once        a command's change to a project, done once

What an agent shows, or repeats from what it read, is not a command.
"""
