"""Opens, migrates, backs up and rebuilds SQLite files. The tables are defined by other packages.

    connection        connecting, transactions, and readable errors
    truth             databases that are migrated
    database_backups  daily backups of such a database
    replace_database  replacing the content of a database that others may have open
    recover_command   running `sqlite3 FILE .recover`
    derived           files that are rebuilt

There are two kinds of files:

- **Truth** is migrated and never rebuilt. `open_truth` migrates it after a backup, and committed
  data survives a power failure.
- **Derived** files are rebuilt and never migrated. They are built under a temporary name,
  sealed with a checksum, renamed into place and never written again; to extend one,
  `build_derived` changes a copy. So a reader keeps the file it opened, and damage is detected.
"""
