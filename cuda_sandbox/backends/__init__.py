"""Device backends: one file each, found by its name, which is also a kernel's language."""
