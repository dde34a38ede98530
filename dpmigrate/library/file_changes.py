"""What changes files of the disk: functions of ``os`` and ``shutil``.

One process has to call them: https://docs.python.org/3/library/shutil.html
"""

from __future__ import annotations

from typing import Final

#: functions that write, move, link or remove files, or change who may read them
FILE_CHANGES: Final = frozenset(
    f"{module}.{name}"
    for module, names in (
        ("os", "chmod chown link mkfifo mknod remove removedirs rename renames replace rmdir symlink truncate unlink"),
        ("shutil", "chown copy copy2 copyfile copymode copystat copytree move rmtree"),
    )
    for name in names.split()
)
