"""What a kernel is worth: task, truth, correctness, timing, verdict."""
