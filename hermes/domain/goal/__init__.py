"""Goals that conversations pursue."""
