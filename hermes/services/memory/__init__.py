"""Memory service and the files of memory."""
