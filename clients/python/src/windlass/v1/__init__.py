"""The messages of the gRPC API, generated from ``proto/windlass/v1``."""
