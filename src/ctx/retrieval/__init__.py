"""From what is known to what an agent is given: which of it, in which order, at what cost.

    compose   entries in, one markdown text out that never exceeds its budget
    markdown  anybody's text inside markdown of ours, where it must stay
    entries   nodes of the graph as entries, read in parts

Nothing here writes, and nothing here prints. It knows the graph below it as ids and plain
values; what a command or a hook does with the text is above.

`compose` and `markdown` load nothing that a hook could not afford, and know nothing of `memory`:
they are on the way of every start of a session.
"""
