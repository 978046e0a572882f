"""Exact search: every engine ends in the same neighbors."""
