"""What a report shows, as plain values."""

from typing import Any

from coarse2fine.report.content import report_content
from coarse2fine.report.page import to_json


def plain_content(sources: Any, **options: Any) -> dict[str, Any]:
    """What `write_report` returns, without a page."""
    return to_json(report_content(sources, **options))
