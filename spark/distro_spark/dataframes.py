"""Violations as a DataFrame, computed from events and runs as DataFrames, for jobs that keep both in tables.

    found = violations(spark.table("lake.events"), spark.table("lake.runs"))
    found.createOrReplaceTempView("found")
    spark.sql("MERGE INTO lake.violations v USING found f ON v.id = f.id WHEN NOT MATCHED THEN INSERT *")

The rows are those that `check` reports: both engines judge by the same functions, and the ids are made by the function
that makes them for `--out` and `--jdbc`. Here the tasks make them, so that no violation passes through the driver.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from pyspark.sql import DataFrame

from distro_spark.arrow import table_of
from distro_spark.check import chosen_invariants, surveyed
from distro_spark.engine import PART_ROWS
from distro_spark.load import loaded_of
from distro_spark.on_spark import OnSpark, client_by_client
from distro_spark.sinks import COLUMNS, with_ids
from distro_spark.tables import headers_in
from distro_spark.tally import covered
from distro_spark.violations import violations_in, violations_of_nodes


def violations(events: DataFrame, runs: DataFrame, invariants: Sequence[str] | None = None) -> DataFrame:
    """One row in `sinks.COLUMNS` for each violation; a known defect is named in `known`.

    `events`: the columns of an event. `runs`: `run` and `header`, the JSON of the first line of a recording; events of
    other runs are left out, so `runs` may be a part of a table. `id` is the key: a hash over run, invariant, node,
    client, first event (`sinks.KEY`) and what several with that one differ in (`sinks.with_ids`), the same in each call
    and in each engine.

    Small jobs run in the call: they read the headers, and what is known of the nodes (some numbers for each, starts,
    checkpoints, member lists, faults). Clients are judged when the answer is used, by one exchange. If events are added
    in between, call again. Nothing is written and no setting changed. What `check` says beside violations is not here:
    rows that do not fit and runs whose recording contradicts itself are left out.

    Raises the TraceError family, UnknownInvariantError.
    """
    return violations_of(OnSpark(events.sparkSession, loaded_of(events, headers_in(runs))), invariants)


def violations_of(engine: OnSpark, invariants: Sequence[str] | None = None) -> DataFrame:
    """As `violations`, of these rows."""
    names = [each.name for each in chosen_invariants(invariants)]
    cluster, invalid = surveyed(engine)
    good = cluster.without(invalid)

    def reported(found: pl.DataFrame) -> pl.DataFrame:
        return with_ids(covered(found, good)[0])

    def judge(part: pl.DataFrame) -> pl.DataFrame:
        return reported(violations_in(part, good, names, dict.fromkeys(names, 0.0)))

    of_nodes = table_of(reported(violations_of_nodes(good, names)), COLUMNS)
    of_clients = client_by_client(engine.chunks, good, judge, COLUMNS, PART_ROWS)
    return engine.chunks.sparkSession.createDataFrame(of_nodes).unionByName(of_clients)
