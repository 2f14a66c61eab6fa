"""What a person reads of a run: trajectory, lineage pictures, tables. Read from the store only."""
