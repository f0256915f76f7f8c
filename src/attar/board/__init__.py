"""The board: problems, references and scores in files that anyone can read, add to and check."""

from attar.board.judge import submit
from attar.board.problem import Problem
from attar.board.reference import Reference, refer
from attar.board.results import Results
from attar.board.score import Score

__all__ = ["Problem", "Reference", "Results", "Score", "refer", "submit"]
