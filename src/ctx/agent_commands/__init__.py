"""Commands of an agent: `<ctx:…>` in an answer, as opposed to text that it only quotes.

    command_parser, markup  what an answer asks of memory
    prose, quotations,      which of it the agent says itself, and what it only quotes
    unfenced

What an agent shows, or repeats from what it read, is not a command.
"""
