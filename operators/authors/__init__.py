"""Authors (who has ideas and writes kernels): one file each, found by its name."""
