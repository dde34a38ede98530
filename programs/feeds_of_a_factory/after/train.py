import argparse
import copy

import torch

from data import make_feed
from nets import make_net
import dpmigrate_runtime as ddp


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="wave")
    parser.add_argument("--net", default="map")
    parser.add_argument("--part", default="train")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--in_order", action="store_true")
    parser.add_argument("--workers", default=0, type=int)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def measure(net, feed):
    error = 0.0
    for batch in feed:
        net.take(batch)
        error += net.error()
    return error / len(feed)


if __name__ == "__main__":
    ddp.setup()
    opt = options()
    torch.manual_seed(3)
    feed = make_feed(opt)
    feed.loader = ddp.distribute(feed.loader)
    test_opt = copy.deepcopy(opt)
    test_opt.part, test_opt.in_order, test_opt.batch_size = "test", True, 1
    test_feed = make_feed(test_opt)
    net = make_net(opt)
    samples = 0
    ddp.seed_ranks()
    for epoch in range(opt.first, opt.epochs + 1):
        feed.loader.sampler.set_epoch(epoch)
        for i, batch in enumerate(feed):
            samples += opt.batch_size
            net.take(batch)
            net.optimize()
        print(f"epoch {epoch}: {samples} samples, error {measure(net, test_feed):.6f}")
    net.save("map.pth")
    ddp.cleanup()
