import torch
from torch import nn
from torch.utils.data import DataLoader
from evaluate import evaluate
from net import Net, data
import dpmigrate_runtime as ddp
def main():
    train_set = data()
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set))
    test = DataLoader(data(), batch_size=8)
    model = ddp.wrap(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(evaluate(model, test))
    ddp.save(model.module.state_dict(), "m.pth")
if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
