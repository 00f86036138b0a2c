"""The RPC layer (Nacos' `core.remote`): the gRPC servers, who is connected to them, and the clients towards peers."""
