from common import *
from data import *
import dpmigrate_runtime as ddp


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean()


def store(net, name):
    ddp.save(net.module.state_dict(), name)
