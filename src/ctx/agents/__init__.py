"""The agents that ctx serves: how each of them is set up, and what it says and hears.

One folder per agent, `runtime` for what their hooks have in common, and `registry` for the list of
them. What an agent's events mean for memory is said by `operations`; a folder
here knows the agent's own shapes, its files and its habits, and nothing about another agent.
Hooks load this file, so it holds nothing.
"""
