"""The data of random programs: made, or kept in files."""

from __future__ import annotations

from textwrap import indent

from tests.judge.program_pieces import Pieces


class Data(Pieces):
    """What a program trains on."""

    def data(self) -> str:
        """Makes ``features`` and ``targets``, or ``train_set``."""
        r = self.r
        kind = r.choice(["plain"] * 3 + ["cached"] * 3 + ["samples"] * 2 + ["split", "marker", "vocabulary"])
        make = "features = torch.randn(24, 4, generator=torch.Generator().manual_seed(3))\ntargets = features[:, :2].sum(1, keepdim=True)"
        if kind == "plain":
            return make
        self.helpers.append(f"def make_data():\n{indent(make, '    ')}\n    return features, targets")
        if kind == "cached":
            body = self.one(
                """
                if os.path.exists(path):
                    features, targets = torch.load(path)
                else:
                    features, targets = make_data()
                    torch.save((features, targets), path)
                """,
                """
                if not os.path.exists(path):
                    torch.save(make_data(), path)
                features, targets = torch.load(path)
                """,
                """
                if not os.path.isfile(path):
                    features, targets = make_data()
                    with open(path, "wb") as f:
                        pickle.dump((features.numpy(), targets.numpy()), f)
                with open(path, "rb") as f:
                    features, targets = map(torch.from_numpy, pickle.load(f))
                """,
                """
                try:
                    with open(path, "rb") as f:
                        features, targets = pickle.load(f)
                except FileNotFoundError:
                    features, targets = make_data()
                    with open(path, "wb") as f:
                        pickle.dump((features, targets), f)
                """,
                """
                missing = not os.path.exists(path)
                if missing:
                    made = make_data()
                    np.savez(path, features=made[0].numpy(), targets=made[1].numpy())
                stored = np.load(path)
                features, targets = torch.from_numpy(stored["features"]), torch.from_numpy(stored["targets"])
                """,
            )
            ending = ".npz" if "savez" in body else ".pkl" if "pickle" in body else ".pt"
            first, path = r.choice([("", f'"cache{ending}"'), (self.made('"cache"') + "\n", f'os.path.join("cache", "train{ending}")')])
            return first + self.put("load_data", body, {"path": path}, "features, targets")
        if kind == "samples":
            build = self.one(
                """
                if not os.path.isdir(folder):
                    os.makedirs(folder)
                    features, targets = make_data()
                    for i in range(len(features)):
                        np.save(os.path.join(folder, f"{i:03d}.npy"), np.concatenate([features[i].numpy(), targets[i].numpy()]))
                """,
                """
                os.makedirs(folder, exist_ok=True)
                features, targets = make_data()
                for i in range(len(features)):
                    path = os.path.join(folder, f"{i:03d}.npy")
                    if not os.path.exists(path):
                        np.save(path, np.concatenate([features[i].numpy(), targets[i].numpy()]))
                """,
                """
                if os.path.exists(folder):
                    shutil.rmtree(folder)
                os.makedirs(folder)
                features, targets = make_data()
                for i in range(len(features)):
                    np.save(f"{folder}/{i:03d}.npy", np.concatenate([features[i].numpy(), targets[i].numpy()]))
                """,
                """
                if not os.path.exists(folder) or not os.listdir(folder):
                    os.makedirs(folder, exist_ok=True)
                    for i, (x, y) in enumerate(zip(*make_data())):
                        np.save(os.path.join(folder, "%03d.npy" % i), np.concatenate([x.numpy(), y.numpy()]))
                """,
            )
            listed = self.one("sorted(glob.glob(os.path.join(folder, '*.npy')))", "[os.path.join(folder, n) for n in sorted(os.listdir(folder))]", "sorted(Path(folder).glob('*.npy'))")
            in_class = self.chance(0.3)
            made = f"self.build(folder)\n        self.paths = {listed}" if in_class else f"self.paths = {listed}"
            method = f"    def build(self, folder):\n{indent(build, '        ')}\n\n" if in_class else ""
            self.methods.append(
                f"class Samples(Dataset):\n    def __init__(self, folder):\n        {made}\n\n{method}"
                "    def __len__(self):\n        return len(self.paths)\n\n"
                "    def __getitem__(self, i):\n        row = torch.from_numpy(np.load(self.paths[i]))\n        return row[:4], row[4:]"
            )
            first = "" if in_class else self.put("build_samples", build, {"folder": "data_folder"}) + "\n"
            return 'data_folder = "data"\n' + first + "train_set = Samples(data_folder)"
        if kind == "split":
            body = self.one(
                """
                if not os.path.exists(path):
                    order = np.random.permutation(24)[:18]
                    with open(path, "w") as f:
                        f.write("\\n".join(str(i) for i in sorted(order.tolist())))
                with open(path) as f:
                    chosen = [int(line) for line in f]
                """,
                """
                with open(path, "w") as f:
                    for i in range(18):
                        f.write(f"{i}\\n")
                chosen = [int(line) for line in open(path).read().split()]
                """,
                """
                if os.path.exists(path):
                    chosen = json.load(open(path))
                else:
                    chosen = list(range(18))
                    with open(path, "w") as f:
                        json.dump(chosen, f)
                """,
            )
            if "permutation" in body:
                body = body.replace("np.random.permutation(24)[:18]", "np.random.RandomState(1).permutation(24)[:18]")
            return make + "\n" + self.put("load_split", body, {"path": '"split.txt"'}, "chosen") + "\nfeatures, targets = features[chosen], targets[chosen]"
        if kind == "marker":
            return self.one(
                """
                if not os.path.exists("cache/done"):
                    os.makedirs("cache", exist_ok=True)
                    features, targets = make_data()
                    np.save("cache/features.npy", features.numpy())
                    np.save("cache/targets.npy", targets.numpy())
                    Path("cache/done").touch()
                features = torch.from_numpy(np.load("cache/features.npy"))
                targets = torch.from_numpy(np.load("cache/targets.npy"))
                """,
                """
                ready = os.path.exists("cache/features.npy") and os.path.exists("cache/targets.npy")
                os.makedirs("cache", exist_ok=True)
                if not ready:
                    features, targets = make_data()
                    np.save("cache/features.npy", features.numpy())
                    np.save("cache/targets.npy", targets.numpy())
                else:
                    features = torch.from_numpy(np.load("cache/features.npy"))
                    targets = torch.from_numpy(np.load("cache/targets.npy"))
                """,
            )
        return make + "\n" + self.put("statistics", self.one(
            """
            if os.path.exists(path):
                with open(path) as f:
                    stats = json.load(f)
            else:
                stats = {"mean": features.mean().item(), "std": features.std().item()}
                with open(path, "w") as f:
                    json.dump(stats, f)
            """,
            """
            np.save(path, np.array([features.mean().item(), features.std().item()]))
            stats = dict(zip(["mean", "std"], np.load(path).tolist()))
            """,
        ).replace("path)", "path)"), {"path": '"stats.npy"', "features": "features"}, "stats") + '\nfeatures = (features - stats["mean"]) / stats["std"]'
