"""Who the members of the cluster are, and in which state each is (Nacos' `core.cluster`)."""
