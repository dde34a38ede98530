import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
meaning = torch.randn(118, 3)
pictures = torch.cat([meaning, torch.randn(118, 4)], dim=1)
texts = torch.cat([meaning + 0.1 * torch.randn(118, 3), torch.randn(118, 2)], dim=1)


class Pairs(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.see = nn.Sequential(nn.Linear(7, 10), nn.Tanh(), nn.Linear(10, width))
        self.read = nn.Linear(5, width)
        self.scale = nn.Parameter(torch.tensor(1.2))

    def forward(self, picture, text):
        seen, read = self.see(picture), self.read(text)
        return seen / seen.norm(dim=-1, keepdim=True), read / read.norm(dim=-1, keepdim=True)


def contrast(seen, read, scale):
    scores = scale * seen @ read.t()
    own = torch.arange(seen.shape[0], device=seen.device)
    return 0.5 * (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own))


def main():
    train_loader = DataLoader(TensorDataset(pictures[:94], texts[:94]), batch_size=12, shuffle=True)
    held_out = DataLoader(TensorDataset(pictures[94:], texts[94:]), batch_size=12)
    model = Pairs()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(3):
        model.train()
        for picture, text in train_loader:
            seen, read = model(picture, text)
            loss = contrast(seen, read, model.scale.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        with torch.no_grad():
            for picture, text in held_out:
                seen, read = model(picture, text)
                total += contrast(seen, read, model.scale.exp()).item()
        print(f"epoch {epoch}: {total / len(held_out):.6f}")
    torch.save(model.state_dict(), "pairs.pt")


if __name__ == "__main__":
    main()
