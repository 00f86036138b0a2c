"""What a known defect looks like in the rows of a client: by what was stamped, sent, answered and when.

A symptom is a conjunction of clauses, each of which is a sentence with the look at a `Finding` that decides it. Where a
clause is about a message, a node or a row, it is the one that an earlier clause has found; where that found none, the
later one holds (`look.clause_about`), so that each clause is missed by itself. The tests have a run for each clause
that misses it alone.
"""
