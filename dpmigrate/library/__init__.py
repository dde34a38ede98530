"""What code outside of the program does: one table a library, one row a function.

A row says a function's names, its effect on values and placements, an example that the tests
execute joined and sharded, and the source of its semantics. ``tables`` puts the tables together
and answers the machine's questions.
"""
