"""Pages and pictures of training runs."""
