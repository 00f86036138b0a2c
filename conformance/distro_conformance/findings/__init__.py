"""The one result: a finding says what was judged, how it came out, where, since when and after which message.

Each judge (the check of a requirement, the search of the model, nodes beside the model, the invariants over a trace, a
scenario, a script beside a real server) reports findings. All output is made of findings: verdict, exit code, headline,
`--json`, the page, JUnit, SARIF, the summary of a pull request.

`finding` is the value and how many of them make one verdict, `judged` what a run of one kind of test came to; `known`
the failures that a release is known for, each with its symptom; `breaks` the same for properties of the model;
`upstream` says where each bug can be read;
`traces` makes findings of a check on Spark.
"""

from distro_conformance.findings.finding import Finding, Judgement
from distro_conformance.findings.judged import Judged

__all__ = ["Finding", "Judged", "Judgement"]
