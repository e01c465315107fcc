"""Packs: what to read for a task, within a budget (`pipeline` says how the parts follow).

    files, items     the files that fit it, then the parts of them to read
    remembered       the nodes of memory that answer it
    node_vectors     which nodes are near it, filled in passing
    seeds, expand    what it names, and what must be read with what was found
    found_code,
    found_memory     what was found, with the reason
    chunks, excerpts what is read of them, and what it costs
    recent           what happened lately
    budget           what is worth its tokens
    pack, pack_text  the pack as a value, and as markdown for an agent; `prompt`: as a prompt

Nothing here prints, and nothing here writes but `node_vectors`, into a file that can be deleted.
"""
