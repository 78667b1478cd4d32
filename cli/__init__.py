"""The `srb` command: one file per subcommand, `srb perturb` is `cli/perturb.py`."""
