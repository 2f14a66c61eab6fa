"""The worker of a module: into the jail, load the candidate, and do what the judge asks."""

from __future__ import annotations

import os
import sys

from fitness.module.runner.channel import Channel
from fitness.module.runner.jail import Jail
from fitness.module.runner.options import Options
from fitness.module.runner.printing import replace_standard_streams


def main() -> None:
    """Run until the judge goes away."""
    options = Options.parse(sys.argv[1:])
    jail = Jail(os.environ["KERNELEVO_JAIL"])
    driver = os.environ["KERNELEVO_DEVICE"] == "cuda"
    jail.prepare(options.control, options.cpus, driver=driver)
    replace_standard_streams()
    channel = Channel(options.control, jail)
    from fitness.module.runner.service import Service  # torch: not before the jail's handlers

    Service(options, jail, channel).serve()
