// Sends the form of a one-time link. Without scripts, a person presses its button.
document.querySelector("form[data-send]")?.requestSubmit();
