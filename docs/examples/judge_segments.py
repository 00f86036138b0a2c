"""Judges the runs whose segments have arrived since the last call, and keeps their violations in a table.

    spark-submit … judge_segments.py s3a://traces lake.ops.violations s3a://judged

The table is of a format that has MERGE (Delta, Iceberg), whose jar and catalog the session needs (--packages, --conf).
Run it as often as violations are wanted, one job at a time; after a kill it continues where it was.
"""

import sys
from functools import partial

from distro_spark.incremental import judged, merge
from distro_spark.session import local_session

traces, table, checkpoint = sys.argv[1:]
session = local_session()
stream = judged(session, traces, partial(merge, into=table))
stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
session.table(table).groupBy("run", "invariant", "known").count().orderBy("run", "invariant", "known").show(
    truncate=False
)
