"""What two ranks really have at each place of a migrated program, held against what the engine says
of it.

``sites`` chooses the places and rewrites the files so that every value passes by a probe, ``inject``
is the probe, ``runs`` starts two ranks and reads what they have left, ``claims`` executes the
program on paper and asks of the same places, and ``compare`` lays the two side by side.
"""
