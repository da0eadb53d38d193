"""Other agents on the same fake model, installed outside the tree."""
