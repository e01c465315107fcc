"""Claude Code's own program, asked with the login that a person has there.

client   the backend: which options make it answer once, and nothing else
place    the folder that it is asked in, of which nothing is left
reply    what it prints
program  a program that answers in lines, for so long and no longer
"""
