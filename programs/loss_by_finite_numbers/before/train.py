import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Guarded(nn.Module):
    """A mean squared error that goes on where something is not finite."""

    def __init__(self, slope=0.1):
        super().__init__()
        self.slope = slope

    def forward(self, given, wanted):
        if torch.isnan(given).any() or torch.isinf(given).any():
            print("the network gives numbers that are not finite")
            return 10 * nn.functional.mse_loss(torch.nan_to_num(given, nan=0.0), wanted)
        error = nn.functional.mse_loss(given, wanted) + self.slope * nn.functional.l1_loss(given, wanted)
        if not torch.isfinite(error):
            return torch.tensor(100.0, requires_grad=True)
        return error


def main():
    torch.manual_seed(3)
    x = torch.randn(48, 5)
    x[7] = float("nan")
    data = TensorDataset(x, torch.randn(48, 2))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
    criterion = Guarded()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        skipped = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x.nan_to_num(5.0)) + 0 * x.sum(1, keepdim=True), y)
            if not loss.requires_grad:
                skipped += 1
                continue
            loss.backward()
            optimizer.step()
        print(epoch, skipped)


if __name__ == "__main__":
    main()
