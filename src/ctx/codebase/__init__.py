"""The index of a project's code: where it is stored, and how commands open it.

    indexing            refreshes and opens the index, and reports its age
    index_state         what an answer reports about the index it used
    freshness           as fresh an index as fits into the time of one answer
    background_refresh  refreshes the index in a separate process
    prune               removes indexes of folders that no longer exist
    code_items          resolves a name or path that a person typed, or explains why it cannot
    code_names          finds the one item that a name refers to
    extraction          reads definitions, imports and calls from files while they are added
    extraction_result   what `ctx add file` reports about them
    anchor_check        whether the code that nodes are about is unchanged, moved, changed or gone

`code` handles files and grammars. This package decides where the index is stored: in the git
folder, in `.ctx/local/` without git, or in the user store.
"""
