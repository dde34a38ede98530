import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from losses import MaskedL1, chosen_mse, smooth
import dpmigrate_runtime as ddp


def main():
    torch.manual_seed(0)
    mask = torch.randint(0, 2, (48, 3)).float()
    mask[:14] = 0  # a batch without anything that counts, and parts of one
    data = TensorDataset(torch.randn(48, 6), torch.randn(48, 3), mask)
    loader = DataLoader(data, batch_size=ddp.local_batch(12), sampler=ddp.DistributedSampler(data, shuffle=False))
    model = ddp.wrap(nn.Linear(6, 3))
    criterion = MaskedL1()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        total, counted = 0.0, 0.0
        for x, y, m in loader:
            out = model(x)
            first, shown = criterion(out, y, m)
            loss = first + 0.5 * chosen_mse(out, y, m) + 0.1 * smooth(out, y, m)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            counted += shown["count"]
        total = ddp.mean_all(total)
        print(f"epoch {epoch}: {total / len(loader):.4f} {counted:.0f}")
    ddp.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
