"""What plugs into the benchmark: one folder each. Nothing outside this room knows them by name."""
