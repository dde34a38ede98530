import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import utils
import dpmigrate_runtime as ddp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    utils.start(args)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
    model = nn.Linear(10, 2)
    model = DistributedDataParallel(model) if args.distributed else ddp.wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(ddp.device())), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            utils.mean(args, loss.detach())
    utils.save(model, "model.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
