"""The checkpoints of random programs: saved, removed, moved, linked, found and loaded."""

from __future__ import annotations

from textwrap import indent

from tests.judge.program_records import Records


class States(Records):
    """What a program keeps of its model."""

    def checkpoints(self) -> tuple[str, str, str]:
        """Checkpoints: what begins them, what each epoch does, what is done with them at the end."""
        r = self.r
        if self.chance(0.3):
            return self.saver()
        bare = self.chance(0.5)
        state = "model.state_dict()" if bare else '{"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "best": best}'
        last, best = self.join("out", "last.pt"), self.join("out", "best.pt")
        begin, each, end = ["best = float('inf')", "start = 0"], [], []
        plan = r.choice(["last", "best", "both", "both", "epochs", "epochs", "replaced", "linked", "copied"])
        if plan in ("last", "both", "linked", "copied"):
            each.append(self.put("save_last", self.one(
                "torch.save(state, path)", "torch.save(state, path)",
                "if os.path.exists(path):\n    os.remove(path)\ntorch.save(state, path)",
                'torch.save(state, path + ".tmp")\nos.replace(path + ".tmp", path)',
                'if os.path.exists(path):\n    shutil.copy(path, path + ".bak")\ntorch.save(state, path)',
                'torch.save(state, path + ".new")\nif os.path.isfile(path):\n    os.remove(path)\nos.rename(path + ".new", path)',
            ), {"state": state, "path": last}))  # fmt: skip
        if plan == "replaced":
            begin.append("previous = None")
            name = self.join("out", "model_{epoch}.pt")
            each.append(self.one(
                f"path = {name}\ntorch.save({state}, path)\nif previous is not None:\n    os.remove(previous)\nprevious = path",
                f"if previous is not None and os.path.exists(previous):\n    os.remove(previous)\nprevious = {name}\ntorch.save({state}, previous)",
            ))  # fmt: skip
        if plan == "epochs":
            each.append(f"torch.save({state}, {self.join('out', 'epoch_{epoch}.pt')})")
            each.append(self.put("prune", self.one(
                'found = sorted(glob.glob(os.path.join(folder, "epoch_*.pt")))\nfor old in found[:-keep]:\n    os.remove(old)',
                'found = sorted(n for n in os.listdir(folder) if n.startswith("epoch_"))\nwhile len(found) > keep:\n    os.remove(os.path.join(folder, found.pop(0)))',
                'found = sorted(Path(folder).glob("epoch_*.pt"), key=lambda p: int(p.stem.split("_")[1]))\nfor old in found[:-keep]:\n    old.unlink()',
                "pass",
            ), {"folder": "out", "keep": "args.keep"}))  # fmt: skip
        if plan in ("best", "both", "copied"):
            how = f"shutil.copyfile({last}, {best})" if plan == "copied" else f"torch.save({state if self.chance(0.5) else 'model.state_dict()'}, {best})"
            each.append(self.one(
                f"if epoch_loss < best:\n    best = epoch_loss\n    {how}",
                f"is_best = epoch_loss < best\nbest = min(best, epoch_loss)\nif is_best:\n    {how}",
                f'if epoch_loss < best:\n    best = epoch_loss\n    {how}\n    with open(os.path.join(out, "best.txt"), "w") as f:\n        f.write(f"{{epoch}} {{best:.5f}}")',
                f"if epoch_loss < best:\n    for old in glob.glob(os.path.join(out, 'best*.pt')):\n        os.remove(old)\n    best = epoch_loss\n    {how}",
            ))  # fmt: skip
        if plan == "linked":
            link = self.join("out", "newest.pt")
            each.append(self.one(
                f"link = {link}\nif os.path.islink(link):\n    os.remove(link)\nos.symlink('last.pt', link)",
                f"link = {link}\nif os.path.lexists(link):\n    os.unlink(link)\nos.symlink(os.path.basename({last}), link)",
                f"try:\n    os.symlink('last.pt', {link})\nexcept FileExistsError:\n    pass",
            ))  # fmt: skip
        pointer = self.chance(0.15) and plan in ("last", "both", "copied", "linked")
        if pointer:
            each.append('with open(os.path.join(out, "newest.txt"), "w") as f:\n    f.write("last.pt")')
        begin.append(self.resume(plan, last, bare, pointer))
        end.append(self.afterwards(plan, last, best, state))
        return "\n".join(x for x in begin if x), "\n".join(each), "\n".join(x for x in end if x)

    def resume(self, plan: str, last: str, bare: bool, pointer: bool) -> str:
        take = "model.load_state_dict(state)" if bare else 'model.load_state_dict(state["model"])\noptimizer.load_state_dict(state["optimizer"])\nstart, best = state["epoch"] + 1, state["best"]'
        inner = indent(take, "    ")
        if pointer and self.chance(0.7):
            return f'if args.resume and os.path.exists(os.path.join(out, "newest.txt")):\n    with open(os.path.join(out, "newest.txt")) as f:\n        state = torch.load(os.path.join(out, f.read().strip()))\n{inner}'
        if plan in ("last", "both", "copied", "linked"):
            return self.one(
                "",
                f"if args.resume and os.path.exists({last}):\n    state = torch.load({last})\n{inner}",
                f"resume_path = {last}\nif os.path.isfile(resume_path):\n    state = torch.load(resume_path)\n{inner}",
                f"found = os.path.exists({last})\nif args.resume and found:\n    state = torch.load({last})\n{inner}",
                f"try:\n    state = torch.load({last})\n{inner}\nexcept FileNotFoundError:\n    print('from the beginning')",
            ).replace("\n    model", "\n    model")
        if plan in ("epochs", "replaced"):
            pattern = "epoch_" if plan == "epochs" else "model_"
            body = self.one(
                f"found = sorted(glob.glob(os.path.join(folder, '{pattern}*.pt')))\nnewest = found[-1] if found else None",
                f"names = [n for n in os.listdir(folder) if n.startswith('{pattern}')]\nnewest = None\nif names:\n    newest = os.path.join(folder, max(names, key=lambda n: int(n.split('_')[1].split('.')[0])))",
                f"found = glob.glob(os.path.join(folder, '{pattern}*.pt'))\nnewest = max(found, key=os.path.getmtime) if found else None",
            )
            return self.put("find_newest", body, {"folder": "out"}, "newest") + f"\nif {self.one('args.resume and newest', 'newest is not None')}:\n    state = torch.load(newest)\n{inner}"
        return ""

    def afterwards(self, plan: str, last: str, best: str, state: str) -> str:
        lines: list[str] = []
        if plan in ("best", "both", "copied") and self.chance(0.7):
            key = '["model"]' if "epoch" in state else ""
            if self.chance(0.5) or not key:
                lines.append(f"state = torch.load({best})\nmodel.load_state_dict(state['model'] if 'model' in state else state)")
            else:
                lines.append(f"if os.path.exists({best}):\n    state = torch.load({best})\n    model.load_state_dict(state.get('model', state))")
        if plan == "epochs" and self.chance(0.6):
            key = '["model"]' if "epoch" in state else ""
            lines.append(self.one(
                f"found = sorted(glob.glob(os.path.join(out, 'epoch_*.pt')))\nmodel.load_state_dict(torch.load(found[-1]){key})",
                f"total = None\nnames = sorted(os.listdir(out))\nnames = [n for n in names if n.startswith('epoch_')]\nfor name in names:\n    state = torch.load(os.path.join(out, name)){key}\n    total = state if total is None else {{k: total[k] + state[k] for k in state}}\nmodel.load_state_dict({{k: v / len(names) for k, v in total.items()}})",
                f"newest = max(glob.glob(os.path.join(out, 'epoch_*.pt')), key=os.path.getmtime)\nstate = torch.load(newest){key}\nmodel.load_state_dict(state)",
            ))  # fmt: skip
        return "\n".join(lines)

    def saver(self) -> tuple[str, str, str]:
        """A class that saves and loads."""
        self.methods.append(self.one(
            """
            class Saver:
                def __init__(self, folder, keep):
                    self.folder = folder
                    self.keep = keep
                    self.saved = []
                    os.makedirs(self.folder, exist_ok=True)

                def path(self, epoch):
                    return os.path.join(self.folder, f"epoch_{epoch}.pt")

                def save(self, state, epoch):
                    torch.save(state, self.path(epoch))
                    self.saved.append(self.path(epoch))
                    if len(self.saved) > self.keep:
                        os.remove(self.saved.pop(0))

                def load(self):
                    found = sorted(os.listdir(self.folder))
                    if not found:
                        return None
                    return torch.load(os.path.join(self.folder, found[-1]))
            """,
            """
            class Saver:
                def __init__(self, folder, keep):
                    self.folder = Path(folder)
                    if self.folder.exists() and not keep:
                        shutil.rmtree(self.folder)
                    self.folder.mkdir(parents=True, exist_ok=True)

                def save(self, state, epoch):
                    target = self.folder / "model.pt"
                    if target.exists():
                        target.replace(self.folder / "model.old.pt")
                    torch.save(state, target)

                def load(self):
                    target = self.folder / "model.pt"
                    if target.is_file():
                        return torch.load(target)
                    return None
            """,
            """
            class Saver:
                def __init__(self, folder, keep):
                    self.folder = folder
                    self.last = os.path.join(folder, "last.pt")
                    if not os.path.exists(folder):
                        os.makedirs(folder)
                    self.index = os.path.join(folder, "index.json")
                    self.entries = []
                    if os.path.exists(self.index):
                        self.entries = json.load(open(self.index))

                def save(self, state, epoch):
                    torch.save(state, self.last)
                    self.entries.append(epoch)
                    with open(self.index, "w") as f:
                        json.dump(self.entries, f)

                def load(self):
                    if self.entries:
                        return torch.load(self.last)
                    return None
            """,
        ))
        begin = "best = float('inf')\nstart = 0\nsaver = Saver(os.path.join(out, 'checkpoints'), args.keep)"
        take = 'state = saver.load()\nif state is not None:\n    model.load_state_dict(state["model"])'
        if self.chance(0.6):
            begin += "\n" + take + '\n    start = state["epoch"] + 1'
        end = take if self.chance(0.5) else ""
        return begin, 'saver.save({"epoch": epoch, "model": model.state_dict()}, epoch)', end
