"""Helpers for every layer: arrays, the engine, threads, progress, validation and files."""
