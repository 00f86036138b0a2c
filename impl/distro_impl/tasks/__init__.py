"""The two task engines on which everything that happens later runs (Nacos' `common.task`)."""
