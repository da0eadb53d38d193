"""Services for what Hermes learned as skills."""
