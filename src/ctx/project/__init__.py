"""A project's store: the memory of a project, kept beside its code.

    project_memory          reads and writes a project's memory: committed, staged, documents
    project_index           the tables of a project
    project_index_state     whether an index is up to date
    index_sync              brings an index up to date by adding and removing batches
    commit_history          the commits that the heads reach
    batches                 records as objects
    document_nodes          the nodes of documents
    anchors                 the nodes that represent something in the code
    staging                 a session's chain of work commits
    staging_chains          lists staged chains and their states
    captured_staging        which captured sessions are staged, and where
    staged_sessions         staged sessions as the index has them; those without new steps for a day
    staged_private          staged records that must not be committed
    current_session         the session that commands join
    broken_chains           repairs damaged chains
    tool_snapshots          snapshots of cargo and of the code in a chain
    snapshot_diff           how the snapshots of two states differ
    command_output          the output of a command, bounded
    reported_diagnostics    diagnostics that a commit takes over
    command_diagnostics     errors that a command reported
    compaction              turns a chain into a commit
    changelog               the lines that describe a commit
    commit_edges            the edges of a commit
    graph_at_commit         a project's graph as of a commit
    authors                 who wrote what was not written here
    transaction             the one way to change memory: over the stores a command needs
    parked_sessions         staged work of a history that is not checked out
    recover_commits         restores commits that git swept away
    trust_list, trust_check,
    repository_identity     whose store is trusted, and whether it is still the same repository
    given, remote_branches  what of a trusted store agents are given
    project_repository      the objects of a project, with what is given of them

It uses objects, the graph and the narrative. It does not decide what agents are given.
"""
