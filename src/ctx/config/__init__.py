"""Settings: the schema, where each value comes from, and editing a file.

    schema            the table of all settings, the only place with names and defaults
    setting           one setting: its type, and parsing a value from a file or a word
    config_files      reading a configuration file that may be hostile
    toml_lines        the line number of a key
    resolve           defaults, user file, project file, environment, flags: later ones win
    edit_file         changing one value in a file
    project_template  the file that `ctx init` writes

A project file comes with a clone and is not trusted: it may set how a project is stored, indexed
and searched, but nothing about servers, models, sharing or costs.

This package neither reads the environment nor prints. Every command loads `schema` and `resolve`,
so they import nothing that is not needed without a configuration file.
"""
