"""The one kind of result: a finding has its subject, judgement, place, time, and the last message before it.

Each judge (the check of a requirement, the search of the model, nodes beside the model, the invariants over a trace, a
scenario, a script beside a real server) reports findings. All output is made of findings: verdict, exit code, headline,
`--json`, the page, JUnit, SARIF, the summary of a pull request.

`finding` has the value, the verdict of many findings, and the result of a run of one kind of test; `known` and
`symptoms` have the known failures of a release, `expected` those that an owner of a server expects; `traces` makes
findings of a check of traces.
"""

from distro_conformance.findings.finding import Finding, Judged, Judgement

__all__ = ["Finding", "Judged", "Judgement"]
