import os

import torch
import dpmigrate_runtime as ddp


def save(model, optimizer, epoch, folder="checkpoints"):
    if not os.path.exists(folder):
        os.makedirs(folder, exist_ok=True)
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    ddp.save(state, os.path.join(folder, "best.pth"))
