"""A folder of a study that is still running, made by hand."""

from __future__ import annotations

from pathlib import Path

from attar.study.grid import Job
from attar.study.progress import write_jobs
from attar.study.results import Run, Study
from attar.study.resume import finish, settle
from tests.report.studies import study


class Folder:
    """The folder, whose jobs finish one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study: Study = study(path, ("uniform", "dm"), seeds=2)
        self.left: dict[Job, list[Run]] = {}
        for run in self.study.runs:
            self.left.setdefault(Job(run.method, run.per_class, run.seed), []).append(run)
        config = {"network": "convnet", "training": {"steps": 300}}
        settle(path, config | {"data": self.study.data, "attar": "0"}, {}, "attar compare <toy>")
        write_jobs(path, {job.key: 200 if job.method == "dm" else None for job in self.left})

    def finish(self) -> str:
        """Finish one more job; its name."""
        job = next(iter(self.left))
        finish(self.path, job, self.left.pop(job))
        return job.key

    def log(self, text: str) -> None:
        """Add to the log of the next job."""
        (self.path / "logs").mkdir(exist_ok=True)
        with (self.path / "logs" / f"{next(iter(self.left)).key}.jsonl").open("a") as file:
            file.write(text)
