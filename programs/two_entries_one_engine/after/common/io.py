import torch
import dpmigrate_runtime as ddp


def save_model(net, path):
    if hasattr(net, "module"):
        net = net.module
    ddp.save(net.state_dict(), path)
    print("saved", path)
