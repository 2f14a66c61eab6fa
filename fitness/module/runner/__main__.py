"""``python -m fitness.module.runner``: the worker of a module."""

from fitness.module.runner.main import main

main()
