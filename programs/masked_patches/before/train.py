import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from hiding import hide

torch.manual_seed(0)
SERIES = torch.cumsum(torch.randn(40, 12, 3), dim=1)


class Encoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(3, size)
        self.mix = nn.Conv1d(size, size, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        return h + self.mix(h.transpose(1, 2)).transpose(1, 2)


def main():
    loader = DataLoader(TensorDataset(SERIES), batch_size=8, shuffle=True)
    encoder, head = Encoder(16), nn.Linear(16, 3)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
    for epoch in range(3):
        total, steps = 0.0, 0
        for (x,) in loader:
            seen, hidden = hide(x, 0.4)
            filled = head(encoder(seen))
            chosen = hidden.unsqueeze(-1).expand_as(filled)
            loss = F.mse_loss(filled[chosen], x[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: {total / steps:.5f}")
    torch.save(encoder.state_dict(), "encoder.pt")


if __name__ == "__main__":
    main()
