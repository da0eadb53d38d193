"""Person model: the built-in one, Honcho as another, and the service that feeds them after turns."""
