"""The web service of a collection: the page for people, the interface for programs."""
