"""Person model: beliefs about a person with evidence, what a model concluded, and how contradictions end; pure."""
