"""What the program is: names, values, roles. Facts know nothing of rules or rewriting."""
