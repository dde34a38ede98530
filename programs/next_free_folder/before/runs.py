import os
import sys

import torch


class Run:
    """A folder of its own for each run: run_0, run_1, and in it notes under names that are free."""

    def __init__(self, root):
        os.makedirs(root, exist_ok=True)
        numbers = [int(name.rpartition("_")[2]) for name in os.listdir(root) if name.startswith("run_")]
        self.folder = os.path.join(root, f"run_{max(numbers, default=-1) + 1}")
        os.makedirs(self.folder)

    def notes(self, stem):
        number = 0
        while os.path.exists(os.path.join(self.folder, f"{stem}_{number}.txt")):
            number += 1
        return os.path.join(self.folder, f"{stem}_{number}.txt")

    def save(self, state):
        torch.save(state, os.path.join(self.folder, "last.pt"))

    def load(self):
        return torch.load(os.path.join(self.folder, "last.pt"))


class Both:
    """What is printed goes to the screen and to a file, which a crash must not cut short."""

    def __init__(self, path):
        self.screen = sys.stdout
        self.log = open(path, "w")

    def write(self, text):
        self.screen.write(text)
        self.log.write(text)

    def flush(self):
        self.screen.flush()
        self.log.flush()
        os.fsync(self.log.fileno())
