"""Where evaluations run: one file each, found by its name."""
