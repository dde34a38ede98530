import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from runs import Both, Run
import dpmigrate_runtime as ddp


def main():
    run = Run("runs")
    sys.stdout = Both(run.notes("log"))
    torch.manual_seed(4)
    x = torch.randn(96, 5)
    data = TensorDataset(x, (x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.5])).unsqueeze(1))
    loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=4))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ddp.wrap(nn.Linear(5, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a.to(device)), b.to(device))
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}")
        sys.stdout.flush()
        run.save(model.module.state_dict())
    model.module.load_state_dict(run.load())
    print("done")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
