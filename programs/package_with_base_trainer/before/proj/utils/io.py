import os
import torch


def save(state, is_best, path):
    torch.save(state, path)
    if is_best:
        torch.save(state, path + ".best")


def log(path, line):
    with open(path, "a") as f:
        f.write(line + "\n")
