"""What the byte filter looks for: a file that holds none of these has nothing for any rule, and is not even parsed.

It stands apart from the rules so that a filtered-out file costs no more than this import; ``tests/test_registry.py`` holds it against the literals
of all rules.
"""

from __future__ import annotations

from typing import Final

#: every rule speaks only of programs that train
TRAINING: Final = (b".backward(", b".backward (")

#: a program whose training is found by name holds one of these, and an optimizer or a loader: it says nothing of ``backward``
BY_NAME: Final = (b"import_module", b"__import__", b"instantiate(", b"eval(", b"exec(")
TRAINED_WITH: Final = (b"torch.optim", b"optim import", b"DataLoader")

#: apply tells a program that trains by other means from one that does not train, so it reads these as well
FRAMEWORKS: Final = (*TRAINING, b"torch", b"lightning", b"transformers")
