"""What is done to a store as a whole: copies, exports, imports."""
