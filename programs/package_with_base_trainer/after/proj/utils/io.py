import os
import torch
import dpmigrate_runtime as ddp


def save(state, is_best, path):
    ddp.save(state, path)
    if is_best:
        ddp.save(state, path + ".best")


def log(path, line):
    with open(ddp.main_path(path), "a") as f:
        f.write(line + "\n")
