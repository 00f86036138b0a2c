"""Naming: clients, what they publish and subscribe to, the requests of SDKs, and pushes."""
