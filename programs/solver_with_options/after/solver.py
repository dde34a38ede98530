import os
import torch
import torch.nn.functional as F
from net import Net
import dpmigrate_runtime as ddp


class Solver(object):
    def __init__(self, loader, config):
        self.loader = loader
        self.iters = config.iters
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.build_model()

    def build_model(self):
        torch.manual_seed(2)
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-2)
        self.net.to(self.device)
        self.net = ddp.wrap(self.net)

    def train(self):
        ddp.seed_ranks()
        data_iter = iter(self.loader)
        for i in range(self.iters):
            try:
                x, y = next(data_iter)
            except StopIteration:
                data_iter = iter(ddp.next_epoch(self.loader))
                x, y = next(data_iter)
            x, y = x.to(self.device), y.to(self.device)
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if (i + 1) % 3 == 0:
                print("Iteration [{}/{}]".format(i + 1, self.iters))
                ddp.save(self.net.module.state_dict(), "%d-net.ckpt" % (i + 1))

    def test(self):
        self.net.module.load_state_dict(torch.load("%d-net.ckpt" % self.iters, map_location=ddp.device()))
        with torch.no_grad():
            for x, y in ddp.whole(self.loader):
                print(self.net.module(x.to(self.device)).argmax(1))
