"""Installing ctx for a host: what is the same for all of them.

    host_setups       the protocol that each host follows in `agents/<host>/<host>_setup.py`
    host_install      installs and uninstalls the files of a host
    host_checks       what `ctx doctor` checks for a host
    mcp_hosts         hosts that are reached by MCP alone
    hook_commands     the command lines of hooks, and how ours are recognized
    hook_entries      hooks in the format of Claude Code's settings
    hook_trials       runs hooks before they are registered
    mcp_registration  the command that starts `ctx mcp`
    mcp_entries       its entry in JSON and TOML files
    owned_file        a whole file of ours

    edited_file       a file of another program, edited in place
    jsonc             JSON with comments; inserts and removes elements in place
    json_entries      one entry in a JSON file
    toml_tables       one table in a TOML file
    yaml_entries      one entry in Goose's YAML file
    settings_file     hooks in a settings file; touches only our own
    program_runs      runs a program with a time limit
    own_program       the `ctx` that is installed here
    skill             the pages that teach an agent to use its memory
    installed_parts   what was installed, for the answer of a command

`agents/known_setups.py` lists the hosts. The files of a host belong to the user: everything that
ctx writes there is recognizable and can be removed without a trace.
"""
