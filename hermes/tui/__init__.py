"""Terminal interface on Textual: the live view (`top`), and a view model that `hermes chat` does not use yet."""
