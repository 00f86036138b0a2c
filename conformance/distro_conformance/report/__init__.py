"""What a gate run says when it is over: the values (`document`) and the files made of them (`write`).

| file | for |
|---|---|
| `report.html` | people |
| `report.json` | scripts |
| `junit.xml` | the table of tests of a CI service: a case for each requirement and property |
| `report.sarif` | services that show findings beside the code |
| `summary.md` | a pull request, and `GITHUB_STEP_SUMMARY` |
"""

from distro_conformance.report.document import Chart, Failure, InvariantRow, Report, Stage
from distro_conformance.report.write import remove_report, write_page, write_report

__all__ = ["Chart", "Failure", "InvariantRow", "Report", "Stage", "remove_report", "write_page", "write_report"]
