"""Networks that turn pictures and texts into vectors: from packages to ONNX files in the cache."""
