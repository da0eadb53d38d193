"""The seams: what actors, adapters, storage and agent expect of each other. Roles here, technology elsewhere."""
