"""INV-SILENT: the connection of a client that has fallen silent is closed.

A row records when the test made the client fall silent, and when the client answered again. Its node finds it idle
after 20 s, at the next of its checks, which are 3 s apart; it sends a probe, waits 5 s for the answer, and closes the
connection (docs/protocol #ejector-check). A release without this check never removes the client (B03).
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, first_of

NOTICED_MS = 20_000 + 2 * 3_000 + 5_000
"""The idle time, then two checks: one sends the probe, one reads the answer."""

MARGIN_MS = 4_000

INVARIANT = Invariant(
    "INV-SILENT",
    "The connection of a client that has fallen silent is closed.",
    needs=Needs(state=True, lossless=True),
)


@INVARIANT.found_by(
    "{node} still has the connection of {client} in {last}; the client has been silent since {first}",
    f"{{node}} closes the connection of {{client}} within {NOTICED_MS // 1000} s",
)
def kept(t: Timeline) -> pl.DataFrame:
    is_fault = c("kind") == "link_fault"
    silences = t.having(is_fault & (c("detail") == "silent"), "row", silent_ms="at_ms")
    if silences.is_empty():
        return NOTHING
    moments = t.moments("g", "row", "at_ms", "native_from", fault=is_fault)
    connected = moments.filter("is_native", c("native_from") <= c("fault")).collect()
    found = connected.join(silences, left_on="fault", right_on="row")
    found = found.filter(c("now_ms") - c("silent_ms") > NOTICED_MS + MARGIN_MS)
    found = first_of(found, "fault", "row", "now_ms")
    return found.select("g", first="fault", last="row", silent_ms=c("at_ms") - c("silent_ms"))
