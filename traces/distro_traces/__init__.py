"""Traces: the events of a run, one row per event.

`event` defines a row, `content` turns the instances that a client publishes into a digest, `ndjson` records and reads
during a run, `parquet` stores it at rest. No module here judges; the invariants are in `spark/`.
"""
