import os
import sys

import torch
import dpmigrate_runtime as ddp


class Run:
    """A folder of its own for each run: run_0, run_1, and in it notes under names that are free."""

    def __init__(self, root):
        os.makedirs(root, exist_ok=True)
        numbers = [int(name.rpartition("_")[2]) for name in ddp.from_main(os.listdir(root)) if name.startswith("run_")]
        self.folder = os.path.join(root, f"run_{max(numbers, default=-1) + 1}")
        os.makedirs(self.folder, exist_ok=True)

    def notes(self, stem):
        number = 0
        while ddp.from_main(os.path.exists(os.path.join(self.folder, f"{stem}_{number}.txt"))):
            number += 1
        return os.path.join(self.folder, f"{stem}_{number}.txt")

    def save(self, state):
        ddp.save(state, os.path.join(self.folder, "last.pt"))

    def load(self):
        ddp.barrier()
        return torch.load(os.path.join(self.folder, "last.pt"), map_location=ddp.device())


class Both:
    """What is printed goes to the screen and to a file, which a crash must not cut short."""

    def __init__(self, path):
        self.screen = sys.stdout
        self.log = open(ddp.main_path(path), "w")

    def write(self, text):
        self.screen.write(text)
        self.log.write(text)

    def flush(self):
        self.screen.flush()
        self.log.flush()
        if ddp.is_main():
            os.fsync(self.log.fileno())
