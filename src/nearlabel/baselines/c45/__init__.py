"""C4.5 trees, as J48 of WEKA grows them."""
