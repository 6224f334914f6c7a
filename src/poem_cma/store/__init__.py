"""Runs as SQLite files: written call by call, gone on with bit for bit, looked at while they grow.

`layout` says what is in the file, `store` writes it, `view` reads it, `check` refuses what is no store of ours or is
damaged, `plan` says what fits together.
"""

from poem_cma.store.errors import StoreError as StoreError
from poem_cma.store.store import NoStore as NoStore
from poem_cma.store.store import Store as Store
from poem_cma.store.view import View as View
