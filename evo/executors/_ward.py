"""Which judges of an executor are in service, and why the others are not."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Ward:
    """Counts the judges that are left; ``say`` is told of each that is taken out."""

    def __init__(self, judges: int) -> None:
        self.say: Callable[[str], None] = lambda _: None
        self._left = judges
        self._lock = threading.Lock()

    def take_out(self, device: str, why: str) -> bool:
        """Take a judge on ``device`` out of the run; whether any other is left."""
        with self._lock:
            self._left -= 1
            left = self._left
        rest = "its work goes to the others" if left else "no other is left"
        self.say(f"{device} is taken out of the run, {rest}: {why}")
        return left > 0
