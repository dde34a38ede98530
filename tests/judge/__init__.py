"""The judge of results: each invariant with what breaks it, and all results that are known to be right."""
