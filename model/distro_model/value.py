"""Values: classes of fields that never change, equal and hashed by them.

For readers and for mypy a value is a frozen dataclass, so mypy refuses to set a field. At run time the fields are not
protected: a frozen dataclass sets each field of a new object by a call, which for the state of a node takes twenty
times as long as to set them, and searches, clocks and walks make values all the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass
    from functools import partial

    def value(*, frozen, slots, order=False):
        assert frozen
        return partial(dataclass, slots=slots, order=order, unsafe_hash=True)


__all__ = ["value"]
