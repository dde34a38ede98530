"""Mutation of results: one edit of a migration is taken away or misplaced; who notices?

``python -m tests.mutation --help`` runs it; docs/mutation.md says how to read what comes of it.
"""
