import torch


def save_model(net, path):
    if isinstance(net, torch.nn.DataParallel):
        net = net.module
    torch.save(net.state_dict(), path)
    print("saved", path)
