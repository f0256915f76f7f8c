"""Charts, pictures and the page a person can look at."""

from attar.report.figures import accuracy_chart
from attar.report.images import contact_sheet, data_uri
from attar.report.page import render, write
from attar.report.terminal import ansi

__all__ = ["accuracy_chart", "ansi", "contact_sheet", "data_uri", "render", "write"]
