"""AddImport: where a new import goes, and when none is needed."""

from __future__ import annotations

import pytest

from dpmigrate.edit import AddImport, Before, Delete

NEW = "import dpmigrate_runtime as ddp"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(f"{NEW}\nx\n", NEW, id="the same line"),
        pytest.param("import os, dpmigrate_runtime as  ddp\nx\n", NEW, id="beside another"),
        pytest.param(f"import os\nx\n{NEW}\n", NEW, id="below the import block"),
        pytest.param("from a.b import (d,\n  c)\n", "from a.b import c", id="one of several names"),
        pytest.param("from . import a; from .. import b\n", "from .. import b", id="relative, on a shared line"),
        pytest.param("from a import *\n", "from a import *", id="star"),
    ],
)
def test_nothing_to_add(check, text, code):
    check(text, lambda _: [AddImport(code)], text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", f"{NEW}\n", id="empty file"),
        pytest.param("# only a comment\n", f"# only a comment\n{NEW}\n", id="no statement"),
        pytest.param("x\n", f"{NEW}\n\nx\n", id="no import: blank line below"),
        pytest.param("# top\n\nx\n", f"# top\n\n{NEW}\n\nx\n", id="below the head of the file"),
        pytest.param("#!/usr/bin/env python\nx\n", f"#!/usr/bin/env python\n{NEW}\n\nx\n", id="below the interpreter line"),
        pytest.param("# top\n\n# mine\nx\n", f"# top\n\n{NEW}\n\n# mine\nx\n", id="comment stays with its statement"),
        pytest.param('"""Doc."""\nx\n', f'"""Doc."""\n\n{NEW}\n\nx\n', id="docstring"),
        pytest.param('"""Doc."""\n\nx\n', f'"""Doc."""\n\n{NEW}\n\nx\n', id="docstring with a blank line"),
        pytest.param('"""Doc."""\n', f'"""Doc."""\n\n{NEW}\n', id="only a docstring"),
        pytest.param("from __future__ import annotations\nx\n", f"from __future__ import annotations\n\n{NEW}\n\nx\n", id="only a future import"),
        pytest.param(
            '"""Doc."""\nfrom __future__ import division\n\nimport os\n\nx\n',
            f'"""Doc."""\nfrom __future__ import division\n\nimport os\n{NEW}\n\nx\n',
            id="all there is",
        ),
        pytest.param(
            "import os\n# c\nimport sys  # d\n\nx\nimport z\n",
            f"import os\n# c\nimport sys  # d\n{NEW}\n\nx\nimport z\n",
            id="last of the first block",
        ),
        pytest.param(
            "import os\nos.environ['A'] = '1'\nos.environ.setdefault('B', '2')\nimport torch\nx\n",
            f"import os\nos.environ['A'] = '1'\nos.environ.setdefault('B', '2')\nimport torch\n{NEW}\nx\n",
            id="below what sets the environment",
        ),
        pytest.param("import os\nos.environ['A'] = '1'\nx\n", f"import os\n{NEW}\nos.environ['A'] = '1'\nx\n", id="no import below that"),
        pytest.param(
            "import os\nos.chdir('a')\nd['A'] = '1'\nimport torch\n", f"import os\n{NEW}\nos.chdir('a')\nd['A'] = '1'\nimport torch\n", id="another statement"
        ),
        pytest.param("import os; import sys\nx\n", f"import os; import sys\n{NEW}\nx\n", id="shared line"),
        pytest.param("import os\nimport sys; x\n", f"import os\n{NEW}\nimport sys; x\n", id="shared line with something else"),
        pytest.param(
            "import a\ntry:\n    import b\nexcept ImportError:\n    b = None\nimport c\nx\n",
            f"import a\ntry:\n    import b\nexcept ImportError:\n    b = None\nimport c\n{NEW}\nx\n",
            id="below a guarded import",
        ),
        pytest.param("import a\nif T:\n    import b\nx\n", f"import a\n{NEW}\nif T:\n    import b\nx\n", id="never inside a guarded import"),
        pytest.param(
            "import a\ntry:\n    import b\n    x\nfinally: pass\nimport c\n",
            f"import a\n{NEW}\ntry:\n    import b\n    x\nfinally: pass\nimport c\n",
            id="a try that does more",
        ),
        pytest.param("import a\nif T: import b\nimport c\n", f"import a\n{NEW}\nif T: import b\nimport c\n", id="one-line guard ends the block"),
        pytest.param("from torch import nn\n", f"from torch import nn\n{NEW}\n", id="another module"),
    ],
)
def test_added(check, text, expected):
    check(text, lambda _: [AddImport(NEW)], expected)


def test_several_are_sorted(check):
    check(
        "import os\n",
        lambda _: [AddImport("from b import c"), AddImport("import z"), AddImport("import os"), AddImport("from a import d")],
        "import os\nimport z\nfrom a import d\nfrom b import c\n",
    )


def test_an_import_that_goes_is_not_there(check):
    check("import os\n⟦import a⟧\n", lambda s: [Delete(s[0]), AddImport("import a")], "import os\nimport a\n")


def test_code_before_the_first_import_follows_the_new_one(check):
    check("⟦import os⟧\n", lambda s: [Before(s[0], "x"), AddImport(NEW)], f"{NEW}\n\nx\nimport os\n")


def test_a_statement_that_goes_does_not_end_the_block(check):
    check("import os\n\n# the GPU\n⟦x = 0⟧\n\nimport a\n# %%\ny\n", lambda s: [Delete(s[0]), AddImport(NEW)], f"import os\n\n# the GPU\n\nimport a\n{NEW}\n# %%\ny\n")
