import os

import torch


def save(model, optimizer, epoch, folder="checkpoints"):
    if not os.path.exists(folder):
        os.makedirs(folder)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, os.path.join(folder, "best.pth"))
