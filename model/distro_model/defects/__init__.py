"""The known defects of releases: one table for all kinds of tests.

`defect` is the type of a row, `table` has the rows, `symptom` describes how a defect is recognised in a finding,
`search` lists the properties of the model that it breaks.
"""

from distro_model.defects.defect import Break, Defect
from distro_model.defects.search import breaking, repaired
from distro_model.defects.symptom import Clause, Sign, Symptom
from distro_model.defects.table import DEFECTS, link_of

__all__ = ["DEFECTS", "Break", "Clause", "Defect", "Sign", "Symptom", "breaking", "link_of", "repaired"]
