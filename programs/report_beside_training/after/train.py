import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from model import Net
from probe import report
import dpmigrate_runtime as ddp


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
    model = ddp.wrap(Net(), find_unused=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(5):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            out, aux = model(x)
            loss = criterion(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report(model, criterion, x, y)
    ddp.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
