"""Context: what an agent gets from a hook, in which order, and at what cost.

    layers, session_layers   what a session gets at its start; layer_lines renders it as lines and
                             has the limits of each layer
    command_lines            the commands that work in a project, one layer
    contexts                 a context as a value, and the table of prepared contexts
    compose                  entries in, one markdown text out, never over its budget
    hook_queries             the statements that hooks run
    context_entries          nodes of the graph as entries
    default_view             which nodes those are
    context_page             one text of a context: memory, then the layers of sessions
    compaction_state         the state of a session after its conversation was compacted
    relevance                what is added to a prompt, and the rules that it would break
    before_edit              what an agent is given before it edits a file
    chooser                  how likely a session needs a passage of a past one; chooser_weights
                             has the numbers, which are fitted
    user_statements          the layers of what the user said
    observation_lines        the lines of observations; layer_rows reads their rows
    excerpt_search           what past sessions said about a first prompt
    project_store_context    what an agent gets from a project's store

Only `contexts` writes, and `hook_queries` removes pending results that it delivers. Modules that
hooks load import nothing slow.
"""
