"""What a known bug looks like in the rows of a client: by what was stamped, sent, answered and when.

Each is a look at the violation (`Violation`) and the client's whole history (`ClientHistory`), in a file with those
that look at the same; `known` says which of them excuses what, in which releases. So what a release does otherwise
needs a function here and an entry there.
"""
