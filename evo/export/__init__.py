"""A kernel as a drop-in PyTorch module: a folder that needs PyTorch and a compiler alone.

The files of the folder are the templates of this package. What differs between languages (the
compiler, the stream) is one template each, ``device.LANGUAGE.py.j2``, found by its name.
"""
