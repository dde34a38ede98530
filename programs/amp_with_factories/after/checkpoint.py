import torch
import dpmigrate_runtime as ddp


def store(path, epoch, model, optimizer):
    ddp.save({"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, path)


def restore(path, model, optimizer):
    saved = torch.load(path, map_location="cpu")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epoch"]
