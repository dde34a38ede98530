"""Random training programs that add up, keep and tell numbers, in the forms that such programs have: flat, in functions, a class, or one loop for two phases."""

from __future__ import annotations

import re
from textwrap import indent

from tests.judge.random_units import Unit, Units

_HEAD = """\
import argparse
import csv
import json
import logging
import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
{imports}
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{tops}
torch.manual_seed({seed})
features = torch.randn({rows}, 6)
labels = (features[:, 0] * 2 + features[:, 1] > 0).long() + (features[:, 2] > 0.5).long()
train_set = TensorDataset(features[:{train}], labels[:{train}])
val_set = TensorDataset(features[{train}:], labels[{train}:])
"""



class Maker(Units):
    """Makes one program."""

    def program(self) -> str:
        """The text of a program."""
        r = self.r
        self.trained = [self.unit(False) for _ in range(r.choice([1, 2, 2, 3]))]
        self.tested = [self.unit(True) for _ in range(r.choice([0, 1, 1, 2, 2]))]
        self.tell = r.choice(["print", "print", "print", "logging", "history", "csv", "wandb", "file"])
        if self.layout == "phases" and not self.tested:
            self.tested = [self.unit(True)]
        body = {"flat": self.flat, "main": self.flat, "function": self.functions, "class": self.classes, "phases": self.phases}[self.layout]()
        tops = "\n".join(self.tops)
        if self.tell == "logging":
            tops += "\nlogging.basicConfig(stream=sys.stdout, level=logging.INFO, format='%(message)s')\nlogger = logging.getLogger(__name__)\n"
        imports = "import wandb\n" if self.tell == "wandb" else ""
        return _HEAD.format(imports=imports, tops=tops, seed=self.seed, rows=self.train + self.val, train=self.train) + body

    def setup(self, me: str = "") -> str:
        drop = ", drop_last=True" if self.drop_last else ""
        r = self.r
        criterion = r.choice(["nn.CrossEntropyLoss()"] * 4 + ["F.cross_entropy"])
        return f"""\
{me}train_loader = DataLoader(train_set, batch_size={self.batch}, shuffle=True{drop})
{me}val_loader = DataLoader(val_set, batch_size={self.val_batch})
{me}model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
{me}criterion = {criterion}
{me}optimizer = torch.optim.SGD({me}model.parameters(), lr=0.2)
"""

    def step(self, me: str = "") -> str:
        pred = self.r.choice(["pred = out.argmax(dim=1)", "_, pred = torch.max(out, 1)", "_, pred = out.max(1)", "pred = out.data.max(1)[1]"])
        return f"{me}optimizer.zero_grad()\nout = {me}model(x)\nloss = {me}criterion(out, y)\nloss.backward()\n{me}optimizer.step()\n{pred}"

    def look(self, me: str = "") -> str:
        pred = self.r.choice(["pred = out.argmax(dim=1)", "_, pred = torch.max(out, 1)", "_, pred = torch.max(out.data, 1)"])
        return f"out = {me}model(x)\nloss = {me}criterion(out, y)\n{pred}"

    def head(self, units: list[Unit], val: bool) -> str:
        loader = self.loader(val)
        text = "\n".join(t for u in units for t in (*u.turn, u.value, *u.after))
        if "step" in re.findall(r"\bstep\b", text) or self.r.random() < 0.4:
            return self.r.choice([f"for step, (x, y) in enumerate({loader}):", f"for step, batch in enumerate({loader}):\n    x, y = batch"])
        return self.r.choice([f"for x, y in {loader}:", f"for batch in {loader}:\n    x, y = batch"])

    def loop(self, units: list[Unit], val: bool, me: str = "") -> str:
        """A pass with its beginnings."""
        init = [s for u in units for s in u.init]
        turn = [self.look(me) if val else self.step(me), *(s for u in units for s in u.turn)]
        inner = f"{self.head(units, val)}\n{indent(chr(10).join(turn + self.inside(units, val)), '    ')}"
        before = [f"{me}model.eval()" if val else f"{me}model.train()"]
        if val:
            inner = f"with torch.no_grad():\n{indent(inner, '    ')}"
        lines = [*before, *init, inner, *(s for u in units for s in u.after)]
        return "\n".join(lines)

    def inside(self, units: list[Unit], val: bool) -> list[str]:
        """Numbers that are told while a pass runs."""
        return []

    def told(self, pairs: list[tuple[str, str]]) -> str:
        """Statements that tell numbers by their tags."""
        r = self.r
        if self.tell == "print":
            if r.random() < 0.3:
                return "print(f'" + " ".join(f"{t} {{{v}:.6f}}" for t, v in pairs) + "')" if not any("'" in v for _, v in pairs) else "\n".join(f"print('{t}', {v})" for t, v in pairs)
            return "\n".join(r.choice([f"print('{t}', {v})", f"print('{t} {{:.6f}}'.format({v}))", f"print('{t} %.6f' % {v})" if "/" not in v and "*" not in v else f"print('{t} %.6f' % ({v}))", f'print("{t} " + str({v}))']) for t, v in pairs)
        if self.tell == "logging":
            return "\n".join(r.choice([f"logger.info('{t} %.6f', {v})", f"logger.info('{t} ' + str({v}))", f"logging.info('{t} {{}}'.format({v}))"]) for t, v in pairs)
        if self.tell == "history":
            return "\n".join(f"history['{t}'].append(float({v}))" for t, v in pairs)
        if self.tell == "csv":
            return "rows.append({" + ", ".join(f"'{t}': float({v})" for t, v in pairs) + "})"
        if self.tell == "wandb":
            return "wandb.log({" + ", ".join(f"'{t}': {v}" for t, v in pairs) + "})"
        return "with open('log.txt', 'a') as f:\n" + "\n".join(f"    f.write('{t} ' + str({v}) + '\\n')" for t, v in pairs)

    def begin(self) -> str:
        tags = [u.tag for u in (*self.trained, *self.tested)]
        if self.tell == "history":
            return self.r.choice(["history = {" + ", ".join(f"'{t}': []" for t in tags) + "}", "history = defaultdict(list)"]) + "\n"
        if self.tell == "csv":
            return "rows = []\n"
        if self.tell == "wandb":
            return "wandb.init(project='p')\n"
        return ""

    def end(self) -> str:
        if self.tell == "history":
            return "with open('history.json', 'w') as f:\n    json.dump(history, f)\n"
        if self.tell == "csv":
            tags = [u.tag for u in (*self.trained, *self.tested)]
            return f"with open('log.csv', 'w', newline='') as f:\n    writer = csv.DictWriter(f, fieldnames={tags})\n    writer.writeheader()\n    writer.writerows(rows)\n"
        if self.tell == "wandb":
            return "wandb.finish()\n"
        return ""

    def decision(self, pairs: list[tuple[Unit, str]]) -> tuple[str, str]:
        """What a metric decides: lines before the epochs, and in each."""
        r = self.r
        if r.random() < 0.5:
            return "", ""
        u, value = r.choice(pairs)
        if u.kind.startswith(("extreme", "last", "summed count")) or "count" in u.kind:
            return "", ""
        u.decides = True
        tag = f"d{u.tag[1:]}"
        better = ">" if u.higher else "<"
        first = "0.0" if u.higher else "float('inf')"
        if self.tell == "file":
            say = f"with open('log.txt', 'a') as f:\n        f.write('{tag} ' + str(epoch) + '\\n')"
        else:
            say = f"print('{tag}', epoch)"
        save = f"torch.save({self.me}model.state_dict(), 'best.pt')"
        if r.random() < 0.7:
            return f"best = {first}\n", f"if {value} {better} best:\n    best = {value}\n    {save}\n    {say}\n"
        return f"best, bad = {first}, 0\n", f"if {value} {better} best:\n    best, bad = {value}, 0\nelse:\n    bad += 1\n    {say}\n    if bad >= 2:\n        break\n"

    def flat(self) -> str:
        pairs = [(u, u.value) for u in (*self.trained, *self.tested)]
        tell = self.told([(u.tag, v) for u, v in pairs])
        if not self.tested or self.r.random() < 0.4:
            first = self.told([(u.tag, u.value) for u in self.trained]) if self.trained else ""
            # rows of one table belong together
            middle = ""
            if self.tell != "csv":
                middle, tell = first + "\n", self.told([(u.tag, u.value) for u in self.tested]) if self.tested else ""
        else:
            middle = ""
        lasts = [u for u in self.trained if "loss" in u.names and u.kind.startswith("last")]
        if lasts and not middle:
            for u in lasts:  # the other pass has a loss of its own
                u.after.append(f"last{u.tag[1:]} = {u.value}")
                u.names.append(f"last{u.tag[1:]}")
            tell = self.told([(u.tag, f"last{u.tag[1:]}" if u in lasts else u.value) for u, _ in pairs])
        before, decide = self.decision([(u, v) for u, v in pairs if u not in lasts])
        parts = [self.loop(self.trained, False), middle]
        if self.tested:
            parts.append(self.loop(self.tested, True))
        parts += [tell, decide]
        epochs = f"for epoch in range(2):\n{indent(chr(10).join(p for p in parts if p), '    ')}\n"
        text = f"{self.setup()}{self.begin()}{before}{epochs}{self.end()}"
        if self.layout == "main":
            return f"\n\ndef main():\n{indent(text, '    ')}\n\nif __name__ == '__main__':\n    main()\n"
        return text

    def handed(self, units: list[Unit], names: list[str]) -> tuple[str, str]:
        """What a function returns, and the caller's names for it."""
        r = self.r
        if len(units) == 1:
            return f"return {units[0].value}", names[0]
        if r.random() < 0.6:
            return "return " + ", ".join(u.value for u in units), ", ".join(names)
        return "return {" + ", ".join(f"'{n}': {u.value}" for u, n in zip(units, names, strict=True)) + "}", ""

    def result_names(self, units: list[Unit]) -> list[str]:
        out = []
        for u in units:
            name = f"{self.r.choice(['result', 'value', 'metric', 'score'])}_{u.tag[1:]}"
            u.names.append(name)
            out.append(name)
        return out

    def called(self, call: str, units: list[Unit], names: list[str], to: str, holder: str) -> tuple[str, list[str]]:
        """The call's statement, and the expressions of its values."""
        if to:
            return f"{to} = {call}", names
        return f"{holder} = {call}", [f"{holder}['{n}']" for n in names]

    def functions(self) -> str:
        r = self.r
        names = self.result_names(self.trained)
        back, to = self.handed(self.trained, names)
        params = "model, train_loader, criterion, optimizer"
        text = f"\n\ndef train_one_epoch({params}):\n{indent(self.loop(self.trained, False) + chr(10) + back, '    ')}\n"
        call, values = self.called(f"train_one_epoch({params})", self.trained, names, to, "train_stats")
        lines = [call]
        pairs = list(zip(self.trained, values, strict=True))
        if self.tested:
            names = self.result_names(self.tested)
            back, to = self.handed(self.tested, names)
            loop = self.loop(self.tested, True)
            decorator = ""
            if r.random() < 0.4:
                decorator = "@torch.no_grad()\n"
            text += f"\n\n{decorator}def evaluate(model, val_loader, criterion):\n{indent(loop + chr(10) + back, '    ')}\n"
            call, values = self.called("evaluate(model, val_loader, criterion)", self.tested, names, to, "val_stats")
            lines.append(call)
            pairs += list(zip(self.tested, values, strict=True))
        before, decide = self.decision(pairs)
        lines += [self.told([(u.tag, v) for u, v in pairs]), decide]
        epochs = f"for epoch in range(2):\n{indent(chr(10).join(p for p in lines if p), '    ')}\n"
        main = f"{self.setup()}{self.begin()}{before}{epochs}{self.end()}"
        return f"{text}\n\ndef main():\n{indent(main, '    ')}\n\nif __name__ == '__main__':\n    main()\n"

    def classes(self) -> str:
        names = self.result_names(self.trained)
        kept = self.r.random() < 0.3
        if kept:  # the object keeps its results
            back = "\n".join(f"self.{n} = {u.value}" for n, u in zip(names, self.trained, strict=True))
            lines = ["self.train_epoch()"]
            pairs = [(u, f"self.{n}") for n, u in zip(names, self.trained, strict=True)]
        else:
            back, to = self.handed(self.trained, names)
            call, values = self.called("self.train_epoch()", self.trained, names, to, "train_stats")
            lines = [call]
            pairs = list(zip(self.trained, values, strict=True))
        text = "\n\nclass Trainer:\n    def __init__(self):\n" + indent(self.setup("self."), " " * 8)
        text += f"\n    def train_epoch(self):\n{indent(self.loop(self.trained, False, 'self.') + chr(10) + back, ' ' * 8)}\n"
        if self.tested:
            names = self.result_names(self.tested)
            back, to = self.handed(self.tested, names)
            text += f"\n    def validate(self):\n{indent(self.loop(self.tested, True, 'self.') + chr(10) + back, ' ' * 8)}\n"
            call, values = self.called("self.validate()", self.tested, names, to, "val_stats")
            lines.append(call)
            pairs += list(zip(self.tested, values, strict=True))
        before, decide = self.decision(pairs)
        lines += [self.told([(u.tag, v) for u, v in pairs]), decide]
        epochs = f"for epoch in range(2):\n{indent(chr(10).join(p for p in lines if p), '    ')}\n"
        text += f"\n    def fit(self):\n{indent(self.begin() + before + epochs + self.end(), ' ' * 8)}\n"
        return f"{text}\n\nif __name__ == '__main__':\n    trainer = Trainer()\n    trainer.fit()\n"

    def phases(self) -> str:
        """One function, or loop, for training and evaluation."""
        r = self.r
        units = self.trained
        for u in self.tested:  # the same numbers of both
            u.tag, u.value = "", ""
        self.tested = []
        twin = []
        for u in units:
            twin.append(f"h{u.tag[1:]}")
        init = "\n".join(s for u in units for s in u.init)
        pred = "pred = out.argmax(dim=1)"
        turn = "\n".join(s for u in units for s in u.turn)
        after = "\n".join(s for u in units for s in u.after)
        text = "\n".join(t for u in units for t in (*u.turn, u.value, *u.after))

        def swap(s: str) -> str:
            return s.replace("train_loader", "loader").replace("len(train_set)", "len(loader.dataset)")

        step_name = "for step, (x, y) in enumerate(loader):" if re.search(r"\bstep\b", text) else "for x, y in loader:"
        if r.random() < 0.5:
            body = f"model.train(train)\n{init}\nwith torch.set_grad_enabled(train):\n    {step_name}\n        out = model(x)\n        loss = criterion(out, y)\n        if train:\n            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n        {pred}\n{indent(turn, ' ' * 8)}\n{after}\n"
            names = self.result_names(units)
            back, to = self.handed(units, names)
            text = f"\n\ndef run_epoch(model, loader, criterion, optimizer=None):\n    train = optimizer is not None\n{indent(swap(body + back), '    ')}\n"
            call, values = self.called("run_epoch(model, train_loader, criterion, optimizer)", units, names, to, "train_stats")
            lines = [call, self.told([(u.tag, v) for u, v in zip(units, values, strict=True)])] if self.tell != "csv" else [call]
            others = [f"val_{n}" for n in names]
            call, val_values = self.called("run_epoch(model, val_loader, criterion)", units, others if to else names, ", ".join(others) if to else "", "val_stats")
            lines.append(call)
            told = list(zip(twin, val_values, strict=True))
            if self.tell == "csv":
                told = [*((u.tag, v) for u, v in zip(units, values, strict=True)), *told]
            lines.append(self.told(told))
            before, decide = self.decision(list(zip(units, val_values, strict=True)))
            lines.append(decide)
            epochs = f"for epoch in range(2):\n{indent(chr(10).join(p for p in lines if p), '    ')}\n"
            main = f"{self.setup()}{self.begin()}{before}{epochs}{self.end()}"
            main = main.replace(f"fieldnames={[u.tag for u in units]}", f"fieldnames={[u.tag for u in units] + twin}")
            if "history = {" in main:
                main = main.replace("history = {", "history = {" + "".join(f"'{t}': [], " for t in twin))
            return f"{text}\n\ndef main():\n{indent(main, '    ')}\n\nif __name__ == '__main__':\n    main()\n"
        loop = f"{init}\nfor x, y in loader:\n" if "enumerate" not in step_name else f"{init}\nfor step, (x, y) in enumerate(loader):\n"
        body = f"model.train() if phase == 'train' else model.eval()\nloader = loaders[phase]\n{loop}    optimizer.zero_grad()\n    with torch.set_grad_enabled(phase == 'train'):\n        out = model(x)\n        loss = criterion(out, y)\n        {pred}\n        if phase == 'train':\n            loss.backward()\n            optimizer.step()\n{indent(turn, '    ')}\n{after}\n"
        tell = "\n".join(f"print(('{u.tag}' if phase == 'train' else '{t}') + ' ' + str({u.value}))" for u, t in zip(units, twin, strict=True))
        self.tell = "print"
        setup = self.setup() + "loaders = {'train': train_loader, 'val': val_loader}\n"
        epochs = f"for epoch in range(2):\n    for phase in ['train', 'val']:\n{indent(swap(body + tell), ' ' * 8)}\n"
        return f"{setup}{epochs}"


def program(seed: int) -> tuple[str, Maker]:
    """The text of a program, and its maker."""
    maker = Maker(seed)
    return maker.program(), maker
