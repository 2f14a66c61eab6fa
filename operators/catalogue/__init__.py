"""The built-in book of optimisation ideas; ``family.py`` tells how to write a family."""
