"""The search: individuals, islands, engine, lineage, store, configuration, command line."""

__version__ = "0.1.0"
