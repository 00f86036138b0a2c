"""Distro (Nacos' `core.distributed.distro` and naming's part of it): sync, verify, snapshot, load."""
