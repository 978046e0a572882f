"""Approximate search by inverted lists, with its recall measured."""
