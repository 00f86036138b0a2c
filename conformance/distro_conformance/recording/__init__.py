"""Trace rows from the messages on links and the reports of nodes."""
