"""Traces: what happened in a run, one row per event.

`event` says what a row is, `content` turns what a client publishes into a digest, `ndjson` records and reads
while a run goes on, `parquet` keeps it at rest. Nothing here judges; the invariants live in `spark/`.
"""
