"""Variation operators: one file each, found by its name, which is also its key under `rates`."""
