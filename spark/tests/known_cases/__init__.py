"""Runs that show a known defect, and near misses of each clause of its symptoms; by the file of the symptoms."""
