"""The agents that ctx supports: how each is installed, and how its hooks and files are read.

One folder per agent, `runtime` for the hook process that they share, and `known_hosts` for the list
of agents. A folder knows its agent's payloads, files and settings, and nothing about other agents;
`operations` decides what events mean for memory. Every hook loads this file, so it is empty.
"""
