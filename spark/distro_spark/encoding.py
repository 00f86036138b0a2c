"""Events as numbers: what travels to the judges instead of wide rows of text.

Names become 64-bit hashes, kinds and outcomes small codes, so that a row is eleven numbers, is shuffled and sorted as
such, and reaches NumPy without a copy. A name comes back only where something is to be told (`explain`). Two clients
of a run, or two contents of a client, whose hashes are equal would be taken for one: among a billion pairs that
happens with a probability of 10⁻¹⁰. A node or peer is hashed together with its run, so a hash names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.story import LEASE
from distro_traces.content import digest
from distro_traces.event import Kind, Outcome

KINDS = {kind: code for code, kind in enumerate(Kind, start=1)}
OPERATIONS = {"CHANGE": 1, "ADD": 1, "DELETE": 2, "VERIFY": 3, "SNAPSHOT": 4, "QUERY": 5}
"""ADD is a CHANGE that a failed verify caused."""

OUTCOMES = {outcome: code for code, outcome in enumerate(Outcome, start=1)}
EMPTY = digest(())
"""The digest of a client that publishes nothing."""

OWNED, NOT_OWNED, HASHED, BY_LEASE, PUBLISHES_NOTHING, SILENT = 1, 2, 4, 8, 16, 32
"""Bits of `flags`. HASHED: an ip:port client, whose owner its hash names. BY_LEASE: removed since nobody renewed it.
SILENT: from here on its client says nothing."""

NO_REVISION = -(2**63)
FALLS_SILENT = "silent"
"""What `detail` says of a removal, and of a fault that meets a client."""

NODE_KINDS = (Kind.NODE_STARTED, Kind.NODE_STOPPED, Kind.CHECKPOINT)
_BY_FREQUENCY = (
    Kind.REQUEST_SENT,
    Kind.REQUEST_RECEIVED,
    Kind.REPLY_SENT,
    Kind.REPLY_RECEIVED,
    Kind.REPLICA_APPLIED,
    Kind.CLIENT_CHANGED,
)


def numbered(events: DataFrame, *further: Column) -> DataFrame:
    """The rows about a client, as numbers: key, node, seq, at_ms, what, peer, message, revision, digest.

    `key` is the hash of (run, client); `what` holds kind, operation, outcome and flags, eight bits each. `further`
    columns come behind them.
    """
    kinds = sorted(Kind, key=lambda kind: (kind not in _BY_FREQUENCY, kind))
    what = (
        _code("kind", [(kind.value, KINDS[kind]) for kind in kinds])
        + _code("operation", [("VERIFY", 3), *((o, c) for o, c in OPERATIONS.items() if o != "VERIFY")]) * 256
        + _code("outcome", [(outcome.value, code) for outcome, code in OUTCOMES.items()]) * 65536
        + _flags() * 16777216
    )
    return events.where("client is not null").select(
        client_key().alias("key"),
        node_hash("node").alias("node"),
        "seq",
        "at_ms",
        what.cast("long").alias("what"),
        F.coalesce(F.when(F.col("peer").isNotNull(), node_hash("peer")), F.lit(0)).alias("peer"),
        hash_of("message"),
        F.coalesce("revision", F.lit(NO_REVISION)).alias("revision"),
        hash_of("digest"),
        *further,
    )


def client_key() -> Column:
    return F.xxhash64("run", "client")


def node_hash(column: str) -> Column:
    return F.xxhash64("run", column)


def hash_of(column: str) -> Column:
    """The hash of a text; 0 stands for none."""
    return F.coalesce(F.when(F.col(column).isNotNull(), F.xxhash64(column)), F.lit(0)).alias(column)


def _code(column: str, codes: Sequence[tuple[str, int]]) -> Column:
    first, *others = [(F.col(column) == value, code) for value, code in codes]
    chain = reduce(lambda chain, case: chain.when(*case), others, F.when(*first))
    return chain.otherwise(0)


def _flags() -> Column:
    return (
        F.when(F.col("owned").isNull(), 0).when(F.col("owned"), OWNED).otherwise(NOT_OWNED)
        + F.when(F.contains("client", F.lit("#")), HASHED).otherwise(0)
        + F.when(F.col("detail") == LEASE, BY_LEASE).when(F.col("detail") == FALLS_SILENT, SILENT).otherwise(0)
        + F.when(F.col("digest") == EMPTY, PUBLISHES_NOTHING).otherwise(0)
    )
