"""What runs in a module's own process. Nothing of the judge is seen there but these files."""
