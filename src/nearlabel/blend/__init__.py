"""What is learned from labels on top of the methods: ridge scores, and a distance from them."""
