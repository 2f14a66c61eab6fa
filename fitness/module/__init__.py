"""Python modules as candidates: KernelBench's ``ModelNew``, in a jailed Python of its own."""
