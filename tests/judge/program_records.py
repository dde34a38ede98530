"""The logs and other records of random programs."""

from __future__ import annotations

from tests.judge.program_data import Data


class Records(Data):
    """What a program writes down of itself."""

    def beginnings(self) -> str:
        """What is done once before the training."""
        pieces = [
            lambda: self.put("backup", self.one(
                'shutil.copy(__file__, os.path.join(folder, "train_copy.py"))',
                'os.makedirs(os.path.join(folder, "code"), exist_ok=True)\nfor source in glob.glob("*.py"):\n    shutil.copy(source, os.path.join(folder, "code"))',
                'if os.path.exists(os.path.join(folder, "code")):\n    shutil.rmtree(os.path.join(folder, "code"))\nshutil.copytree(".", os.path.join(folder, "code"), ignore=shutil.ignore_patterns("runs*", "cache*", "*.pt", "data*"))',
            ), {"folder": "out"}),
            lambda: self.put("save_options", self.one(
                'with open(os.path.join(folder, "options.json"), "w") as f:\n    json.dump(vars(options), f, indent=2)',
                'with open(os.path.join(folder, "options.txt"), "w") as f:\n    for key, value in sorted(vars(options).items()):\n        f.write(f"{key}: {value}\\n")',
                'json.dump(vars(options), open(os.path.join(folder, "options.json"), "w"))',
                'Path(folder, "options.json").write_text(json.dumps(vars(options)))',
                'path = os.path.join(folder, "options.json")\nif not os.path.exists(path):\n    with open(path, "w") as f:\n        json.dump(vars(options), f)\nwith open(path) as f:\n    print("options", json.load(f))',
                'path = os.path.join(folder, "options.pkl")\nwith open(path, "wb") as f:\n    pickle.dump(vars(options), f)',
            ), {"folder": "out", "options": "args"}),
            lambda: 'print("files so far:", sorted(os.listdir(out)))',
            lambda: 'torch.save(vars(args), os.path.join(out, "options.pt"))',
            lambda: 'with open(os.path.join(out, "started.txt"), "a") as f:\n    f.write("started\\n")',
            lambda: self.one(
                'counter = int(open("counter.txt").read()) if os.path.exists("counter.txt") else 0\nwith open("counter.txt", "w") as f:\n    f.write(str(counter + 1))\nprint("start number", counter)',
                'if os.path.exists("running"):\n    raise SystemExit("another one is running")\nopen("running", "w").close()',
                'old_log = os.path.join(out, "log.csv")\nif os.path.exists(old_log):\n    os.rename(old_log, old_log + ".1")',
                'if os.path.isfile(os.path.join(out, "final.pt")) and not args.resume:\n    print("there is a trained model")\n    os.remove(os.path.join(out, "final.pt"))',
                'try:\n    os.remove(os.path.join(out, "status.json"))\nexcept OSError:\n    pass',
                'Path(out, "status.json").unlink(missing_ok=True)',
                'os.system(f"touch {out}/touched")',
                'size = sum(os.path.getsize(os.path.join(folder, n)) for folder, _, names in os.walk(out) for n in names)\nprint("bytes so far", size)',
                'for name in os.listdir(out):\n    if name.endswith(".npy"):\n        os.remove(os.path.join(out, name))',
            ),
        ]
        return "\n".join(p() for p in self.r.sample(pieces, self.r.randint(0, 2)))

    def log(self) -> tuple[str, str, str]:
        """A log: what begins it, what is written each epoch, what ends it."""
        r = self.r
        name = r.choice(["log.csv", "log.txt", "history.csv"])
        path = self.join("out", name)
        kind = r.choice(["append"] * 2 + ["open", "writer", "class", "class", "rewritten", "header", "logging", "print", "numpy", "none"])
        if kind == "append":
            body = self.one(
                'with open(path, "a") as f:\n    f.write(f"{epoch},{loss:.5f}\\n")',
                'with open(path, "a+") as f:\n    print(epoch, f"{loss:.5f}", file=f)',
                'f = open(path, "a")\nf.write("%d %.5f\\n" % (epoch, loss))\nf.close()',
                'with open(path, "a", newline="") as f:\n    csv.writer(f).writerow([epoch, f"{loss:.5f}"])',
            )
            return "", self.put("write_log", body, {"path": path, "epoch": "epoch", "loss": "epoch_loss"}), ""
        if kind == "open":
            return f'log = open({path}, "{r.choice("wa")}")', 'log.write(f"{epoch} {epoch_loss:.5f}\\n")\nlog.flush()', "log.close()"
        if kind == "writer":
            return (
                f'log_file = open({path}, "w", newline="")\nlog = csv.writer(log_file)\nlog.writerow(["epoch", "loss"])',
                'log.writerow([epoch, f"{epoch_loss:.5f}"])\nlog_file.flush()', "log_file.close()",
            )
        if kind == "class":
            self.methods.append(self.one(
                """
                class Log:
                    def __init__(self, path):
                        self.path = path
                        with open(self.path, "w") as f:
                            f.write("epoch loss\\n")

                    def add(self, epoch, loss):
                        with open(self.path, "a") as f:
                            f.write(f"{epoch} {loss:.5f}\\n")
                """,
                """
                class Log:
                    def __init__(self, path):
                        self.path = path
                        self.rows = []
                        if os.path.exists(self.path):
                            with open(self.path) as f:
                                self.rows = f.read().splitlines()

                    def add(self, epoch, loss):
                        self.rows.append(f"{epoch} {loss:.5f}")
                        with open(self.path, "w") as f:
                            f.write("\\n".join(self.rows))
                """,
                """
                class Log:
                    def __init__(self, path):
                        self.file = open(path, "a")

                    def add(self, epoch, loss):
                        self.file.write(f"{epoch} {loss:.5f}\\n")
                        self.file.flush()
                """,
                """
                class Log:
                    def __init__(self, path):
                        self.path = path
                        if os.path.exists(path):
                            os.remove(path)

                    def add(self, epoch, loss):
                        new = not os.path.exists(self.path)
                        with open(self.path, "a", newline="") as f:
                            writer = csv.writer(f)
                            if new:
                                writer.writerow(["epoch", "loss"])
                            writer.writerow([epoch, f"{loss:.5f}"])
                """,
            ))  # fmt: skip
            return f"log = Log({path})", "log.add(epoch, epoch_loss)", ""
        if kind == "rewritten":
            path = path.replace(name, "history.json")
            body = self.one(
                'with open(path, "w") as f:\n    json.dump(history, f)',
                'json.dump(history, open(path, "w"))',
                'with open(path + ".tmp", "w") as f:\n    json.dump(history, f)\nos.replace(path + ".tmp", path)',
                'if os.path.exists(path):\n    os.remove(path)\nwith open(path, "w") as f:\n    json.dump(history, f)',
            )
            first = self.one("history = []", f"history = json.load(open({path})) if args.resume and os.path.exists({path}) else []",
                             f"history = []\nif os.path.exists({path}):\n    with open({path}) as f:\n        history = json.load(f)")  # fmt: skip
            return first, "history.append(round(epoch_loss, 5))\n" + self.put("write_history", body, {"path": path, "history": "history"}), ""
        if kind == "header":
            first = self.one(
                f'log_path = {path}\nif not os.path.exists(log_path):\n    with open(log_path, "w") as f:\n        f.write("epoch,loss\\n")',
                f'log_path = {path}\nnew_log = not os.path.exists(log_path)\nwith open(log_path, "a") as f:\n    if new_log:\n        f.write("epoch,loss\\n")',
                f'log_path = {path}\nnew_log = not os.path.exists(log_path) or os.path.getsize(log_path) == 0\nlog = open(log_path, "a")\nif new_log:\n    log.write("epoch,loss\\n")\nlog.close()',
            )
            return first, 'with open(log_path, "a") as f:\n    f.write(f"{epoch},{epoch_loss:.5f}\\n")', ""
        if kind == "logging":
            first = self.one(
                f"logger = logging.getLogger('train')\nlogger.setLevel(logging.INFO)\nlogger.addHandler(logging.FileHandler({path}))",
                f"logging.basicConfig(filename={path}, level=logging.INFO, format='%(message)s')\nlogger = logging.getLogger()",
            )
            return first, 'logger.info(f"epoch {epoch} loss {epoch_loss:.5f}")', ""
        if kind == "print":
            return "", f'print(f"epoch {{epoch}} {{epoch_loss:.5f}}", file=open({path}, "a"))', ""
        if kind == "numpy":
            first, last = "losses = []", self.one(f"np.savetxt({path}, np.array(losses), fmt='%.5f')", f"np.save({path.replace(name, 'losses.npy')}, np.array(losses))")
            return first, "losses.append(epoch_loss)" + ("\n" + last if self.chance(0.4) else ""), last
        return "", 'print(f"epoch {epoch} {epoch_loss:.5f}")', ""
