"""The mathematics that methods name: what a method's file would be too long for."""
