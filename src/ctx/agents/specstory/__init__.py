"""SpecStory, which writes down the sessions of Cursor, Claude Code, Copilot and other agents.

It is a recorder and no host: it has no hooks, and nothing is installed for it. Only
`ctx import --from specstory` reads its files.
"""
