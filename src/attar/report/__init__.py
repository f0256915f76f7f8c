"""Reports: charts, images and the HTML page."""

from attar.report.figures import accuracy_chart
from attar.report.images import contact_sheet, data_uri
from attar.report.make import report
from attar.report.page import render, write

__all__ = ["accuracy_chart", "contact_sheet", "data_uri", "render", "report", "write"]
