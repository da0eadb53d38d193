"""Search by meaning: embeddings of messages, from a local model or an endpoint; an optional extra."""
