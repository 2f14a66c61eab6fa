"""Compile and run kernels nobody trusts. Knows nothing of search or of PyTorch models."""
