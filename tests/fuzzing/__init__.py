"""Fuzzing of everything that reads a file."""
