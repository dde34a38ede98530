from common import *
from data import *


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean()


def store(net, name):
    torch.save(net.module.state_dict(), name)
