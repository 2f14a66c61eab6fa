"""``python -m evo`` is the ``kernelevo`` command, where the package is not installed."""

from evo.cli.main import main

main(prog_name="kernelevo")
