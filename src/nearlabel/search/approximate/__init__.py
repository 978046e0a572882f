"""Approximate search by inverted lists, with measured recall."""
