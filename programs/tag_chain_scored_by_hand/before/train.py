import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from chain import TagChain

torch.manual_seed(5)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.reader = nn.GRU(12, 12, batch_first=True, bidirectional=True)
        self.score = nn.Linear(24, 4)
        self.chain = TagChain(4)

    def forward(self, words, tags, real):
        out, _ = self.reader(self.embed(words))
        return -self.chain(self.score(out), tags, real)


words = torch.randint(0, 30, (96, 9))
tags = words % 4
real = torch.arange(9) < torch.randint(1, 10, (96, 1))
loader = DataLoader(TensorDataset(words, tags, real), batch_size=16, shuffle=True)
model = Tagger().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    total = 0.0
    for words, tags, real in loader:
        loss = model(words.to(device), tags.to(device), real.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
torch.save(model.state_dict(), "tagger.pt")
