"""The catalogue of optimisation ideas and composable kernels: one folder per operator family."""
