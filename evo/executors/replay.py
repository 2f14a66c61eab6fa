"""Another run's store as an executor: every kernel gets the verdict that it got there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

from evo.executor import Job, JobFailed
from evo.store import Store
from fitness.evaluation import Evaluation


class ReplayExecutor:
    """Answers from ``store``; a kernel that was not judged there fails."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._header = store.info.header
        verdicts = Counter(row[0] for row in store.rows("select hardware from evaluations"))
        self.hardware = verdicts.most_common(1)[0][0] if verdicts else ""
        self.devices: tuple[str, ...] = (f"replay of {store.info.name}",)

    def submit(self, job: Job) -> Future[Evaluation]:
        """The recorded verdict, at once."""
        future: Future[Evaluation] = Future()
        digest = job.kernel.digest(self._header)
        evaluation = self._store.evaluation(digest, self.hardware, job.purpose)
        if evaluation is None:
            where = f"{self._store.info.name} holds no verdict on this kernel"
            future.set_exception(JobFailed(f"{where} (digest {digest[:12]}, {job.purpose})"))
        else:
            future.set_result(evaluation)
        return future

    def heed(self, say: Callable[[str], None]) -> None:
        """There is no device that could be taken out."""

    def close(self) -> None:
        """Nothing was started."""
