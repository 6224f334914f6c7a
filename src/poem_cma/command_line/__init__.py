"""What the commands do: `poem_cma.command_line.cli` is the door, here are the rooms.

`settings` reads options and TOML files, `target` finds functions and programs, `run` minimises, `show` and `export`
look at stores.
"""
