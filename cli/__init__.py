"""The `srb` command: a file for each group of commands in `srb --help`, listed in `cli/command.py`."""
