"""The search: individuals, islands, engine, lineage, store, configuration, command line."""
