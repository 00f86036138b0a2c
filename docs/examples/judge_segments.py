"""Check the runs of which new segments have arrived since the last call, and store their violations in a table.

    spark-submit … judge_segments.py s3a://traces lake.ops.violations s3a://judged

The table has a format with MERGE (Delta, Iceberg), and the session needs the jar and the catalog of that format
(--packages, --conf). Run this script regularly, but never two at a time. After a kill the next call continues where it
ended.
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
