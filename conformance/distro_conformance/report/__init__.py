"""What a gate run says when it is over: the values (`document`) and the files made of them (`write`)."""

from distro_conformance.report.document import Failure, InvariantRow, Report, RequirementRow, Stage, ViolationRow
from distro_conformance.report.write import write_report

__all__ = ["Failure", "InvariantRow", "Report", "RequirementRow", "Stage", "ViolationRow", "write_report"]
