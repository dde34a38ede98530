import csv
import random

import numpy as np
import torch


def fix_random(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Recorder:
    def __init__(self, path):
        self.path = path
        self.rows = []

    def add(self, epoch, loss, error):
        self.rows.append((epoch, loss, error))
        print("epoch %d: loss %.4f, error %.4f" % (epoch, loss, error))
        with open(self.path, "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["epoch", "loss", "error"])
            writer.writerows(self.rows)

    def best(self):
        return "least error %.4f" % min(row[2] for row in self.rows)


def save_states(path, **states):
    torch.save(states, path)
