import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import engine


class Job:
    def __init__(self):
        data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64,)))
        self.loader = DataLoader(data, batch_size=8, shuffle=True)
        self.model = nn.Linear(10, 2)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)


def main():
    torch.manual_seed(0)
    job = Job()
    for epoch in range(3):
        engine.train_epoch(job)
    torch.save(job.model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
