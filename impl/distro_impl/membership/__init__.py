"""The members of the cluster and the state of each (`core.cluster` in Nacos)."""
