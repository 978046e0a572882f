"""What people use instead: other learners beside ours, with parameters chosen on training rows."""
