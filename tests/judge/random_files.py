"""Random training programs that work with files and folders, and what becomes of them at two ranks.

``python -m tests.judge.random_files --count 300`` prints the programs whose migration does something
else with its files than the program before: one rank fails or waits for ever, or other files are left.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from textwrap import indent

from tests.judge.program_states import States

_HEAD = """\
import argparse
import csv
import glob
import json
import logging
import os
import pickle
import shutil
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
"""
_OPTIONS = """\
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--out", default="runs")
parser.add_argument("--name", default="base")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--resume", action="store_true")
parser.add_argument("--keep", type=int, default=2)
"""


@dataclass
class Program:
    """A program: its files, the script first, and the command lines it is started with, in turn."""

    files: dict[str, str]
    commands: list[list[str]]

    @property
    def text(self) -> str:
        """All files, one after the other."""
        return "\n".join(f"# ---- {name}\n{text}" for name, text in self.files.items())


class Maker(States):
    """Makes one program."""

    # ------------------------------------------------------------ in and after an epoch

    def extra(self) -> str:
        """What else happens at the end of an epoch."""
        return self.one(
            "", "", "", "",
            "if os.path.exists('STOP'):\n    break",
            "if os.path.exists('lr.txt'):\n    for group in optimizer.param_groups:\n        group['lr'] = float(open('lr.txt').read())",
            "np.save(os.path.join(out, f'weights_{epoch}.npy'), model.weight.detach().numpy())",
            "with open(os.path.join(out, 'status.json'), 'w') as f:\n    json.dump({'epoch': epoch}, f)\nstatus = json.load(open(os.path.join(out, 'status.json')))\nprint('status', status['epoch'])",
            "scratch = os.path.join(out, 'scratch')\nos.makedirs(scratch, exist_ok=True)\nnp.save(os.path.join(scratch, 'a.npy'), model.weight.detach().numpy())\nprint(len(os.listdir(scratch)))\nshutil.rmtree(scratch)",
            "folder = os.path.join(out, f'epoch{epoch}')\nos.makedirs(folder, exist_ok=True)\nnp.savetxt(os.path.join(folder, 'weights.txt'), model.weight.detach().numpy(), fmt='%.5f')",
            "if epoch == 2 and os.path.exists(os.path.join(out, 'last.pt')):\n    state = torch.load(os.path.join(out, 'last.pt'))\n    model.load_state_dict(state['model'] if 'model' in state else state)",
            "try:\n    os.remove(os.path.join(out, 'tick.txt'))\nexcept FileNotFoundError:\n    pass\nwith open(os.path.join(out, 'tick.txt'), 'w') as f:\n    f.write(str(epoch))",
            "name = os.path.join(out, f'best_{epoch_loss:.3f}.pt')\ntorch.save(model.state_dict(), name)\nranked = sorted(glob.glob(os.path.join(out, 'best_*.pt')), key=lambda p: float(Path(p).stem.split('_')[1]))\nfor worse in ranked[args.keep:]:\n    os.remove(worse)",
            "for name in os.listdir(out):\n    if name.startswith('weights_') and name != f'weights_{epoch}.npy':\n        os.remove(os.path.join(out, name))\nnp.save(os.path.join(out, f'weights_{epoch}.npy'), model.weight.detach().numpy())",
            "stage = os.path.join(out, 'stage')\nif os.path.exists(stage):\n    shutil.rmtree(stage)\nos.makedirs(stage)\ntorch.save(model.state_dict(), os.path.join(stage, 'model.pt'))\nshutil.move(os.path.join(stage, 'model.pt'), os.path.join(out, f'stage_{epoch}.pt'))",
            "if epoch == 1 and os.path.exists(os.path.join(out, 'best.pt')):\n    print('there is a best one', os.path.getsize(os.path.join(out, 'best.pt')) > 0)",
        )  # fmt: skip

    def evaluation(self) -> str:
        """A pass without training; '' or text that uses ``out`` and ``epoch``."""
        if self.chance(0.5):
            return ""
        images = self.one(
            "",
            "if i == 0:\n    write_image(os.path.join(out, f'inputs_{epoch}.pgm'), x[:4])",
            "if i == 0:\n    np.save(os.path.join(out, f'first_{epoch}.npy'), x[:8].numpy())",
        )
        if "write_image" in images:
            self.helpers.append(
                "def write_image(path, rows):\n    values = (rows.clamp(-1, 1) * 100 + 120).round().to(torch.uint8).numpy()\n"
                "    with open(path, 'wb') as f:\n        f.write(b'P5 %d %d 255\\n' % (values.shape[1], values.shape[0]))\n        f.write(values.tobytes())"
            )
        kept = self.chance(0.5)
        lines = ["model.eval()", "predictions = []" if kept else "total = 0.0", "with torch.no_grad():", "    for i, (x, y) in enumerate(valid_loader):", "        p = model(x)"]
        lines.append("        predictions.append(p)" if kept else "        total += F.mse_loss(p, y, reduction='sum').item()")
        if images:
            lines.append(indent(images, "        "))
        if kept:
            lines.append(self.one(
                "np.save(os.path.join(out, f'predictions_{epoch}.npy'), torch.cat(predictions).numpy())",
                "np.savetxt(os.path.join(out, 'predictions.csv'), torch.cat(predictions).numpy(), fmt='%.5f')",
                "with open(os.path.join(out, 'predictions.csv'), 'w', newline='') as f:\n    csv.writer(f).writerows(torch.cat(predictions).numpy().round(5).tolist())",
            ))  # fmt: skip
        else:
            lines.append(self.one(
                "print(f'validation {total / len(valid_set):.5f}')",
                "with open(os.path.join(out, 'validation.txt'), 'a') as f:\n    f.write(f'{total / len(valid_set):.5f}\\n')",
            ))  # fmt: skip
        return "\n".join(lines)

    def finish(self) -> str:
        """What is done with the folder at the end."""
        pieces = [
            "print('files', len(os.listdir(out)))",
            "with open(os.path.join(out, 'summary.json'), 'w') as f:\n    json.dump({'files': sorted(os.listdir(out)), 'loss': round(epoch_loss, 5)}, f)",
            "torch.save(model.state_dict(), os.path.join(out, 'final.pt'))\nprint('saved', os.path.getsize(os.path.join(out, 'final.pt')) > 100)",
            "torch.save(model.state_dict(), os.path.join(out, 'final.pt'))\nagain = nn.Linear(4, 1)\nagain.load_state_dict(torch.load(os.path.join(out, 'final.pt')))\nprint(again(torch.ones(1, 4)).item())",
            "shutil.make_archive(os.path.join(args.out, 'archive'), 'zip', out)",
            "for old in glob.glob(os.path.join(out, '*.tmp')):\n    os.remove(old)",
            "Path(out, 'finished').touch()",
            "shutil.copytree(out, args.out + '_copy', dirs_exist_ok=True)",
            "if os.path.exists('latest'):\n    os.remove('latest')\nos.symlink(out, 'latest')",
            "names = sorted(n for n in os.listdir(out) if n.endswith('.pt'))\nfor name in names:\n    state = torch.load(os.path.join(out, name))\n    print(name, len(state))",
            "rows = [line.split() for line in open(os.path.join(out, 'started.txt'))] if os.path.exists(os.path.join(out, 'started.txt')) else []\nprint(len(rows))",
            "shutil.rmtree(out + '_done', ignore_errors=True)\nos.rename(out, out + '_done')",
            "results = json.load(open('results.json')) if os.path.exists('results.json') else {}\nresults[args.name] = round(epoch_loss, 5)\nwith open('results.json', 'w') as f:\n    json.dump(results, f)",
            "new = not os.path.exists('results.csv')\nwith open('results.csv', 'a', newline='') as f:\n    writer = csv.writer(f)\n    if new:\n        writer.writerow(['name', 'loss'])\n    writer.writerow([args.name, f'{epoch_loss:.5f}'])",
            "np.save(os.path.join(out, 'w.npy'), model.weight.detach().numpy())\nweights = np.load(os.path.join(out, 'w.npy'))\nos.remove(os.path.join(out, 'w.npy'))\nprint('norm', np.linalg.norm(weights))",
            "if os.path.exists('running'):\n    os.remove('running')",
            "kept = args.out + '_kept'\nos.makedirs(kept, exist_ok=True)\nfor name in sorted(os.listdir(out)):\n    if name.endswith('.pt'):\n        shutil.copy(os.path.join(out, name), kept)\nprint('kept', len(os.listdir(kept)))",
            "total = 0\nfor folder, _, names in os.walk(out):\n    total += len(names)\nprint('files in all', total)",
        ]
        chosen = self.r.sample(pieces, self.r.randint(0, 2))
        return "\n".join(sorted(chosen, key=lambda p: "'_done'" in p))

    # ------------------------------------------------------------ all together

    def program(self) -> Program:
        """A program."""
        r = self.r
        data = self.data()
        log, write, close = self.log()
        begin, each, end = self.checkpoints()
        evaluation = self.evaluation()
        folder, beginnings, extra, finish = self.folder(), self.beginnings(), self.extra(), self.finish()
        batch = r.choice(["6", "6", "12"])
        sets = "" if "train_set =" in data else "train_set = TensorDataset(features, targets)\n"
        sets += f"train_loader = DataLoader(train_set, batch_size={batch}, shuffle={r.choice(['True', 'False'])})"
        if evaluation:
            valid = "torch.randn(10, 4, generator=torch.Generator().manual_seed(4))"
            sets += f"\nvalid_set = TensorDataset({valid}, torch.zeros(10, 1))\nvalid_loader = DataLoader(valid_set, batch_size=5)"
        model = "model = nn.Linear(4, 1)\nnn.init.constant_(model.weight, 0.1)\nnn.init.zeros_(model.bias)\noptimizer = torch.optim.SGD(model.parameters(), lr=args.lr)"
        step = """\
model.train()
total_loss = 0.0
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    total_loss += loss.item() * x.size(0)
epoch_loss = total_loss / len(train_set)"""
        body = [p for p in (step, write, evaluation, each, extra) if p]
        if self.chance(0.3):
            body[1:] = r.sample(body[1:], len(body) - 1)
        before = [folder, data, sets, model]
        if self.chance(0.4):
            before = [data, sets, folder, model]
        before += r.sample([beginnings, log, begin], 3)
        if self.chance(0.25):
            return self.trainer(before, body, close, end, finish)
        epoch = f"epoch_loss = 0.0\nfor epoch in range(start, args.epochs):\n{indent(chr(10).join(body), '    ')}"
        main = "\n".join(p for p in (*before, epoch, close, end, finish) if p)
        return self.written(main)

    def trainer(self, before: list[str], body: list[str], close: str, end: str, finish: str) -> Program:
        """The same as a class whose object holds what is made."""
        start = "\n".join(p for p in (*before, "epoch_loss = 0.0") if p)
        names = {t.id for n in ast.walk(ast.parse(start)) if isinstance(n, ast.Assign) for s in n.targets for t in ast.walk(s) if isinstance(t, ast.Name)}
        names = (names | {"args"}) - {"x", "y", "i", "path", "made", "stored", "row"}
        step, *rest = (_of_self(p, names) for p in body)
        run = "\n".join(("self.train_epoch(epoch)", *rest))
        last = "\n".join(_of_self(p, names) for p in (close, end, finish) if p)
        ways = {"init": _of_self(start, names), "train_epoch": step, "run": f"for epoch in range(self.start, self.args.epochs):\n{indent(run, '    ')}"}
        separate = self.chance(0.5) and bool(last)
        if separate:
            ways["run"] += "\nself.finish()"
        elif last:
            ways["run"] += "\n" + last
        text = "class Trainer:\n    def __init__(self, args):\n        self.args = args\n" + indent(ways["init"], " " * 8)
        text += "\n\n    def train_epoch(self, epoch):\n" + indent(ways["train_epoch"], " " * 8)
        text += "\n\n    def run(self):\n" + indent(ways["run"], " " * 8)
        if separate:
            text += "\n\n    def finish(self):\n" + indent(last, " " * 8)
        self.methods.append(text)
        return self.written("trainer = Trainer(args)\ntrainer.run()")

    def written(self, main: str) -> Program:
        """The files of a program with its main part."""
        r = self.r
        options = _OPTIONS + "args = parser.parse_args()\n"
        tools = "\n\n\n".join([*dict.fromkeys(self.helpers), *self.methods])
        files: dict[str, str] = {}
        head = _HEAD
        if tools and self.chance(0.25) and not re.search(r"(?<!self\.)args\.", tools):
            names = re.findall(r"^(?:def|class) (\w+)", tools, re.M)
            files["tools.py"] = f"{_HEAD}\n\n{tools}\n"
            head += f"\nfrom tools import {', '.join(names)}\n"
            tools = ""
        if self.chance(0.6) or re.search(r"(?<!self\.)args\.", tools):
            inner = options + main
            if re.search(r"(?<!self\.)args\.", tools):
                text = f"{head}\n{options}\n\n{tools}\n\n\ndef main():\n{indent(main, '    ')}\n"
            else:
                text = f"{head}\n\n{tools}\n\n\ndef main():\n{indent(inner, '    ')}\n"
            text += '\n\nif __name__ == "__main__":\n    main()\n'
        else:
            text = f"{head}\n\n{tools}\n\n{options}{main}\n"
        commands: list[list[str]] = r.choice([[[]], [["--epochs", "2"], ["--resume", "--epochs", "4"]], [["--epochs", "2"], ["--epochs", "3"]]])
        return Program({"train.py": text, **files}, commands)


class _OfSelf(ast.NodeTransformer):
    """Makes variables attributes of ``self``."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx) if node.id in self.names else node


def _of_self(text: str, names: set[str]) -> str:
    return ast.unparse(ast.fix_missing_locations(_OfSelf(names).visit(ast.parse(text))))


def program(seed: int) -> Program:
    """The program of a seed."""
    return Maker(seed).program()
