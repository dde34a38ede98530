"""What the byte filter looks for: a file that holds none of these has nothing for any rule, and is not even parsed.

It stands apart from the rules so that a filtered-out file costs no more than this import; ``tests/test_registry.py`` holds it against the literals
of all rules.
"""

from __future__ import annotations

import re
from typing import Final

#: every rule speaks only of programs that train
TRAINING: Final = (b".backward(", b".backward (")

#: a program whose training is found by name holds one of these, and an optimizer or a loader: it says nothing of ``backward``
BY_NAME: Final = (b"import_module", b"__import__", b"instantiate(", b"eval(", b"exec(")
TRAINED_WITH: Final = (b"torch.optim", b"optim import", b"DataLoader")

#: a program that trains without ``backward()`` holds one of these
SIGNS: Final = (b"ptim", b"autograd", b"functorch", b"torch.func", b"runpy", b"exec(", b"train", b"rainer", b"fit", b"tune", b"learn", b"earner")
#: what such a program calls or imports, exactly enough that files which only prepare, evaluate or plot are not parsed
UNSEEN: Final = re.compile(
    rb"\boptim\b|[Oo]ptimizer|autograd\.grad\b|autograd[ \t]+import|functorch|torch\.func\b|\brunpy\b|\w(?:rainer|earner)\b"
    rb"|\b(?:(?:pre_?|re)?train|fine_?tune|fit|learn)(?:_\w+)?(?:[ \t]+as\b|[ \t]*\((?![ \t]*(?:\)|True|False)))"
)

#: apply tells a program that trains by other means from one that does not train, so it reads these as well
FRAMEWORKS: Final = (*TRAINING, b"torch", b"lightning", b"transformers")
