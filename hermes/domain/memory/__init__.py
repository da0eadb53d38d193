"""Memory: notes that last over conversations. Scopes, entries, edits and their reconciliation with files; pure."""
