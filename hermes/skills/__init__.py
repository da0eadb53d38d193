"""Skills on disk: format, catalogue, versions, sources of an installation."""
