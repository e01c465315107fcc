"""Sessions: a stretch of an agent's work, from its first step to the commit that keeps it.

It knows steps, staging and compaction. Capture never reads memory: nothing here asks what is
remembered.
"""
