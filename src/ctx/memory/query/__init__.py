"""The query language: from a text to the ids of nodes.

    syntax      text → tokens with their places; a mistake drawn with a caret under it
    filters     tokens → filters; time_filters: ages and dates
    query_parser
                tokens → a tree of filters, or words with filters that must match
    conditions  filters → SQL conditions
    compile     tree, scope and time → one SQL statement
    dialects    the SQL engines that it can be compiled for
    execute     runs it: the ids in order, their number, by tier
    tsvector_search
                text search in PostgreSQL
    matched_words
                the words of a node that a search matched
    prepared_views
                the statements of a view as JSON, for hooks
    node_candidates
                the few hundred nodes that may answer a question

There are two kinds of queries. The words decide which kind a query is.

**Only filters**, joined by `AND`, `OR`, `NOT` and parentheses: the matching nodes, the newest
first. Every mistake is an error that shows the position and the most similar valid word.

    type:fact                  a type of node
    tag:project:shop           a tag; `tag:task:*` is every tag that begins so
    created:>24h  updated:<1w  younger than a day, older than a week; `created:24h` is `>=24h`
    created:2024-01-31         on that day; `>` and `>=` since it began, `<` before it began,
                               `<=` until it has ended; `2024-01-31T10:00:00Z` is one second
    tokens:<1000               the estimated size; also `>`, `>=`, `<=`, and `=` or nothing
    has:summary                also `edges`, `tags`, `metadata`, `superseded`
    from:ID  to:ID             with an edge from that node, or to it
    session:ID                 tagged with a session, or recorded in it
    project:shop               short for `tag:project:shop`
    path:src/net               about a file, about what lies in a folder, or mentioning either;
                               `path:src/*.py` matches as the shell does, but `*` takes `/` too
    id:01M7                    by the beginning of an id; four characters are enough

**Any other word** makes it a question in natural language, often pasted: `AND`, `(` or `TypeError:`
are ordinary words in it. Valid filters apply, and all of them must match. The answer is ranked.
Nothing is an error.

The scope, not the query, decides what is visible: superseded nodes, other projects and other tasks
are left out unless the query names them.
"""
