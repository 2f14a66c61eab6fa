"""How a new kernel comes to be: ideas, authors, variation, selection."""
