"""The service itself: how it is put together, started, drained, reloaded and stopped."""
