"""Templates that several families include: ``{% include "_shared/FILE.j2" %}``."""
