"""What travels, and what stands in its way: connections, Distro messages, links with faults, forwarders."""
