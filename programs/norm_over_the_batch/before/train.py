"""Points that a small network turns before it classifies them; the turn is kept close to a rotation by one norm over the batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Turn(nn.Module):
    def __init__(self, k: int = 3) -> None:
        super().__init__()
        self.k = k
        self.features = nn.Conv1d(k, 8, 1)
        self.out = nn.Linear(8, k * k)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        count = points.size(0)
        found = torch.relu(self.features(points)).max(2)[0]
        start = torch.eye(self.k, requires_grad=True).repeat(count, 1, 1)
        if points.is_cuda:
            start = start.cuda()
        return self.out(found).view(-1, self.k, self.k) + start


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = Turn()
        self.layers = nn.Sequential(nn.Conv1d(3, 16, 1), nn.ReLU(), nn.Conv1d(16, 16, 1))
        self.head = nn.Linear(16, 4)

    def forward(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        matrix = self.turn(points)
        points = torch.bmm(points.transpose(1, 2), matrix).transpose(1, 2)
        return torch.log_softmax(self.head(self.layers(points).max(2)[0]), 1), matrix


def loss_of(outputs: torch.Tensor, labels: torch.Tensor, matrix: torch.Tensor, alpha: float = 0.01) -> torch.Tensor:
    batch_size = outputs.size(0)
    identity = torch.eye(3, requires_grad=True).repeat(batch_size, 1, 1)
    if outputs.is_cuda:
        identity = identity.cuda()
    difference = identity - torch.bmm(matrix, matrix.transpose(1, 2))
    return nn.NLLLoss()(outputs, labels) + alpha * torch.norm(difference) / float(batch_size)


def main() -> None:
    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    points, labels = torch.randn(64, 3, 12), torch.randint(0, 4, (64,))
    loader = DataLoader(TensorDataset(points, labels), batch_size=16, shuffle=True)
    model = Classifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            outputs, matrix = model(x)
            loss = loss_of(outputs, y, matrix)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
