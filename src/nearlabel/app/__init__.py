"""The web service of a collection: a page for people and an interface for programs."""
