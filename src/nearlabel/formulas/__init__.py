"""The mathematics of the methods, where it is too long for a method's own file."""
