import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
import pairs
from data import inputs, targets
from engine import train_epoch, train_pairs


def main():
    model = ddp.wrap(nn.Linear(10, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_set_3 = TensorDataset(inputs, targets)
    loader = DataLoader(train_set_3, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set_3, seed=2000))
    ddp.seed_ranks()
    for epoch in range(2):
        train_epoch(model, optimizer)
    ddp.seed_ranks()
    for epoch in range(2):
        pairs.pair_loader.sampler.set_epoch(epoch)
        train_pairs(model, optimizer)
    ddp.seed_ranks()
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(len(pairs.pair_loader.dataset))
    ddp.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
