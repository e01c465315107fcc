"""From what is known to what an agent is given: which of it, in which order, at what cost.

For a task, a pack (`pipeline` tells how its parts follow each other):

    files, items     the files that fit it, then the parts of them to read
    remembered       the nodes of memory that answer it
    seeds, expand    what it names, and what must be read with what was found
    budget           what is worth its tokens
    pack, pack_text  the pack as a value, and as markdown for an agent

For a session, a context:

    compose   entries in, one markdown text out that never exceeds its budget
    markdown  anybody's text inside markdown of ours, where it must stay
    entries   nodes of the graph as entries, read in parts
    layers    what a session is given when it starts

Nothing here writes, and nothing here prints. It knows the graph and the code below it as ids and
plain values; what a command or a hook does with the text is above.

`compose` and `markdown` load nothing that a hook could not afford, and know nothing of `memory`:
they are on the way of every start of a session.
"""
