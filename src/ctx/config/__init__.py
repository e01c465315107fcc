"""Settings: what there is to set, where each value comes from, and how a file is changed.

    schema    the table of all settings; the only place where a name or a default is written
    setting   one setting: what it takes, and how a value is read from a file or a word
    files     a configuration file, read with the care that a stranger's file needs
    lines     on which line of a file a key stands
    resolve   defaults, user file, project file, environment, flags: later ones win
    edit      changing one value in a file and leaving the rest of it alone
    template  the file that `ctx init` writes

A project file comes with a clone, so it is a stranger's: it may tune how a project is stored,
indexed and searched, and has no say over servers, models, sharing or anything that costs money.

Nothing here reads the environment or prints. Every command loads `schema` and `resolve`, so
they import nothing that is not needed where no configuration file exists.
"""
