"""Installing ctx for a host: what is the same for all of them.

    host_setups       what ctx must know about a host, with defaults
    known_setups      every host for which `ctx install` works
    host_install      installs and uninstalls the files of a host
    host_checks       what `ctx doctor` checks for a host
    host_files        hooks and the entry of `ctx mcp`, in the files of a host
    hook_commands     the command lines of hooks, and how ours are recognized
    hook_trials       runs hooks before they are registered

    edited_file       a file of another program, edited in place
    jsonc             JSON with comments; inserts and removes elements in place
    json_entries      one entry in a JSON file
    toml_tables       one table in a TOML file
    yaml_entries      one entry in Goose's YAML file
    settings_file     hooks in a settings file; touches only our own
    program_runs      runs a program with a time limit
    own_program       the `ctx` that is installed here
    skill             the pages that teach an agent to use its memory

The files of a host belong to the user: everything that
ctx writes there is recognizable and can be removed without a trace.
"""
