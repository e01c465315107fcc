"""What every SQLite file here rests on. It knows nothing about their tables.

    connection  one file: connecting, transactions, and SQLite's errors in words
    truth       databases that are migrated
    replace     another content in the place of a database that others may have open
    pages       the rows of a file that SQLite refuses, page by page
    derived     files that are rebuilt

There are two kinds, and they live differently:

- **Truth** is migrated and never rebuilt. `open_truth` brings it to the present version after
  a backup, and what was committed survives a power cut.
- **Derived** files are rebuilt and never migrated. They are built under a temporary name,
  sealed with a checksum, renamed into place and never written again; to extend one,
  `build_derived` changes a copy. So a reader keeps what it opened, and a changed byte shows.
"""
