import importlib

from nets.base import BaseNet


def make_net(opt):
    module = importlib.import_module(f"nets.{opt.net}_net")
    for found, cls in module.__dict__.items():
        if found.lower() == opt.net + "net" and issubclass(cls, BaseNet):
            return cls(opt)
    raise NotImplementedError(opt.net)
