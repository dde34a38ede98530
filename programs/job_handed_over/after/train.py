import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import engine
import dpmigrate_runtime as ddp


class Job:
    def __init__(self):
        data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
        self.loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data))
        self.model = ddp.wrap(nn.Linear(10, 2))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)


def main():
    torch.manual_seed(0)
    job = Job()
    ddp.seed_ranks()
    for epoch in range(3):
        job.loader.sampler.set_epoch(epoch)
        engine.train_epoch(job)
    ddp.save(job.model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
