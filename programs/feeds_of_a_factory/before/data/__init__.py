import importlib

import torch.utils.data

from data.base import Base


def find_data(name):
    module = importlib.import_module("data." + name + "_data")
    wanted = name.replace("_", "") + "data"
    for found, cls in module.__dict__.items():
        if found.lower() == wanted and issubclass(cls, Base):
            return cls
    raise NotImplementedError(name)


def make_feed(opt):
    feed = Feed(opt)
    return feed.ready()


class Feed:
    def __init__(self, opt):
        self.opt = opt
        self.data = find_data(opt.data)(opt)
        self.loader = torch.utils.data.DataLoader(self.data, batch_size=opt.batch_size, shuffle=not opt.in_order, num_workers=int(opt.workers))

    def ready(self):
        return self

    def __len__(self):
        return min(len(self.data), self.opt.most)

    def __iter__(self):
        for i, batch in enumerate(self.loader):
            if i * self.opt.batch_size >= self.opt.most:
                break
            yield batch
