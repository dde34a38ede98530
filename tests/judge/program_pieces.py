"""Pieces of random programs that work with files: alternatives, functions of their own, paths and folders."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from textwrap import dedent, indent


@dataclass
class Pieces:
    """Pieces of programs: what they are put together with, and folders."""

    seed: int
    helpers: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    names: int = 0

    def __post_init__(self) -> None:
        self.r = random.Random(self.seed)

    # ------------------------------------------------------------ pieces

    def one(self, *texts: str) -> str:
        """One of several pieces of text."""
        return dedent(self.r.choice(texts)).strip("\n")

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def put(self, name: str, body: str, given: dict[str, str], gives: str = "") -> str:
        """A piece in its place or in a function of its own. ``given``: its parameters with what stands
        for them; ``gives``: the variable in which it leaves its result.
        """
        inline = self.chance(0.5)
        if inline:
            for parameter, text in given.items():
                body = re.sub(rf"(?<![\w.'\"]){parameter}\b(?!['\"])", text.replace("\\", r"\\"), body)
            return body
        if f"def {name}(" not in "\n".join(self.helpers):
            last = f"\nreturn {gives}" if gives else ""
            self.helpers.append(f"def {name}({', '.join(given)}):\n{indent(body + last, '    ')}")
        call = f"{name}({', '.join(given.values())})"
        return f"{gives} = {call}" if gives else call

    def join(self, folder: str, name: str) -> str:
        """The path of a file in a folder; ``name`` may have holes."""
        quoted = f'f"{name}"' if "{" in name else f'"{name}"'
        return self.r.choice([f"os.path.join({folder}, {quoted})"] * 3 + [f'f"{{{folder}}}/{name}"'] + ([f'{folder} + "/{name}"'] if "{" not in name else []))

    # ------------------------------------------------------------ the folder of the run

    def folder(self) -> str:
        """Makes ``out``."""
        r = self.r
        kind = r.choice(["plain"] * 4 + ["stamped"] * 2 + ["numbered", "cleared", "moved", "emptied", "parts"])
        if kind == "stamped":
            stamp = self.one('time.strftime("%Y%m%d-%H%M%S")', 'datetime.now().strftime("%Y%m%d_%H%M%S")', "str(int(time.time()))")
            line = self.one(f"out = os.path.join(args.out, {stamp})", f'out = os.path.join(args.out, args.name + "_" + {stamp})', f'out = "{{}}/{{}}".format(args.out, {stamp})')
            return line + "\n" + self.made("out")
        if kind == "numbered":
            return self.one(
                """
                os.makedirs(args.out, exist_ok=True)
                out = os.path.join(args.out, "run" + str(len(os.listdir(args.out))))
                os.makedirs(out)
                """,
                """
                number = 0
                while os.path.exists(os.path.join(args.out, f"run{number}")):
                    number += 1
                out = os.path.join(args.out, f"run{number}")
                os.makedirs(out)
                """,
                """
                out = os.path.join(args.out, args.name)
                if os.path.exists(out):
                    out = out + "_" + str(len(glob.glob(out + "*")))
                os.makedirs(out, exist_ok=True)
                """,
            )
        first = 'out = os.path.join(args.out, args.name)\n' if self.chance(0.7) else "out = args.out\n"
        if kind == "cleared":
            body = self.one(
                "if os.path.exists(folder):\n    shutil.rmtree(folder)\nos.makedirs(folder)",
                "if os.path.exists(folder):\n    shutil.rmtree(folder)\nos.makedirs(folder, exist_ok=True)",
                "shutil.rmtree(folder, ignore_errors=True)\nos.makedirs(folder)",
                "if os.path.isdir(folder) and not args.resume:\n    shutil.rmtree(folder)\nif not os.path.isdir(folder):\n    os.makedirs(folder)",
                "if not os.path.exists(folder):\n    os.makedirs(folder)\nelif not args.resume:\n    shutil.rmtree(folder)\n    os.makedirs(folder)",
            )
            return first + self.inline(body, folder="out") if "args." in body else first + self.put("fresh_folder", body, {"folder": "out"})
        if kind == "moved":
            body = self.one(
                'if os.path.exists(folder):\n    shutil.rmtree(folder + ".old", ignore_errors=True)\n    os.rename(folder, folder + ".old")\nos.makedirs(folder)',
                'if os.path.exists(folder):\n    if os.path.exists(folder + "_old"):\n        shutil.rmtree(folder + "_old")\n    shutil.move(folder, folder + "_old")\nos.makedirs(folder, exist_ok=True)',
            )
            return first + self.put("rotate", body, {"folder": "out"})
        if kind == "emptied":
            body = self.one(
                "for entry in os.listdir(folder):\n    if os.path.isfile(os.path.join(folder, entry)):\n        os.remove(os.path.join(folder, entry))",
                'for old in glob.glob(os.path.join(folder, "*.pt")):\n    os.remove(old)',
                'for old in Path(folder).glob("*.txt"):\n    old.unlink()',
                'for entry in os.listdir(folder):\n    if entry.endswith(".tmp"):\n        os.remove(os.path.join(folder, entry))',
            )
            return first + self.made("out") + "\n" + self.put("empty", body, {"folder": "out"})
        if kind == "parts":
            more = self.one(
                'for part in ("checkpoints", "samples"):\n    os.makedirs(os.path.join(out, part), exist_ok=True)',
                'for part in ["checkpoints", "samples"]:\n    if not os.path.exists(os.path.join(out, part)):\n        os.makedirs(os.path.join(out, part))',
                'samples = os.path.join(out, "samples")\nif not os.path.isdir(samples):\n    os.mkdir(samples)',
            )
            return first + self.made("out") + "\n" + more
        return first + self.made("out")

    def inline(self, body: str, **given: str) -> str:
        for parameter, text in given.items():
            body = re.sub(rf"\b{parameter}\b", text, body)
        return body

    def made(self, path: str) -> str:
        """A folder that is made where it is missing."""
        body = self.one(
            "os.makedirs(folder, exist_ok=True)",
            "os.makedirs(folder, exist_ok=True)",
            "if not os.path.exists(folder):\n    os.makedirs(folder)",
            "if not os.path.isdir(folder):\n    os.makedirs(folder)",
            "Path(folder).mkdir(parents=True, exist_ok=True)",
            "try:\n    os.makedirs(folder)\nexcept FileExistsError:\n    pass",
            "try:\n    os.makedirs(folder)\nexcept OSError:\n    if not os.path.isdir(folder):\n        raise",
        )
        return self.put("ensure_folder", body, {"folder": path})
