"""Claim: on the embedded digits, networks trained on learnt examples beat those trained on as many random or herded
ones.

All runs share one network, one training budget and five seeds. An interrupted benchmark resumes.
"""

from __future__ import annotations

from pathlib import Path

from attar.study import StudySpec
from benchmarks import carry_out, publish

NAME = "digits"
# A step of dc at 10 per class costs six of dm, so it gets half as many: the whole study takes ten minutes on two free
# cores.
SPEC = StudySpec(
    data="digits",
    methods=("dm", "dc"),
    per_class=(1, 10),
    seeds=range(5),
    draws=3,
    descent={"dm": {"steps": 300}, "dc": {"steps": 150}},
)


def main() -> list[Path]:
    """Run the study; write its JSON file, table, chart and, if it is small enough, page."""
    return publish(carry_out(SPEC, NAME), NAME)
