"""The known defects of releases: one table, from which every kind of test takes what it needs.

`defect` is the type of a row, `table` has the rows, `symptom` says how a defect is recognised in a finding, `search`
which properties of the model it breaks.
"""

from distro_model.defects.defect import Break, Defect
from distro_model.defects.search import breaking, repaired
from distro_model.defects.symptom import Clause, Symptom
from distro_model.defects.table import DEFECTS, link_of

__all__ = ["DEFECTS", "Break", "Clause", "Defect", "Symptom", "breaking", "link_of", "repaired"]
