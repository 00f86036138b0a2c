"""The one shape of a violation, so that a report is a union.

It answers what a person asks: which node, which client, since when (`first_event`), until where (`last_event`), and
in one sentence what is wrong. `evidence` holds the same as text under names, for machines.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

SIGNATURE = "signature"
"""Evidence key: the class of a failure, by which a known one is recognised (`known.py`)."""

EVENT_REFERENCE = StructType(
    [
        StructField("node", StringType()),
        StructField("seq", LongType()),
        StructField("at_ms", LongType()),
        StructField("kind", StringType()),
        StructField("message", StringType()),
    ]
)
"""Enough of a row to find it: (run, node, seq) is its key."""

VIOLATION = StructType(
    [
        StructField("invariant", StringType()),
        StructField("run", StringType()),
        StructField("profile", StringType()),
        StructField("client", StringType()),
        StructField("node", StringType()),
        StructField("first_event", EVENT_REFERENCE),
        StructField("last_event", EVENT_REFERENCE),
        StructField("evidence", MapType(StringType(), StringType())),
        StructField("message", StringType()),
    ]
)


def event_reference() -> Column:
    return F.struct(*EVENT_REFERENCE.names)


def told(event: str) -> Column:
    """An event reference in words: `client_changed of a at 1200 ms (seq 7, message m3)`."""
    words = F.format_string(
        "%s of %s at %d ms (seq %d", f"{event}.kind", f"{event}.node", f"{event}.at_ms", f"{event}.seq"
    )
    message = F.concat(F.lit(", message "), F.col(f"{event}.message"))
    return F.concat(words, F.coalesce(message, F.lit("")), F.lit(")"))


def evidence(**values: Column | str) -> Column:
    """A map of what is known; what is null is left out."""
    pairs = [part for name, value in values.items() for part in (F.lit(name), _column(value).cast("string"))]
    return F.map_filter(F.create_map(*pairs), lambda _, value: value.isNotNull())


def as_violations(rows: DataFrame, invariant: str) -> DataFrame:
    """Rows that carry all other columns, as violations of `invariant`."""
    return rows.withColumn("invariant", F.lit(invariant)).select(
        *(F.col(field.name).cast(field.dataType) for field in VIOLATION)
    )


def no_violations(session: SparkSession) -> DataFrame:
    return session.createDataFrame([], VIOLATION)


def _column(value: Column | str) -> Column:
    return F.col(value) if isinstance(value, str) else value
