import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from chain import TagChain
import dpmigrate_runtime as ddp

ddp.setup()
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
train_set = TensorDataset(words, tags, real)
loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=5))
model = ddp.wrap(Tagger().to(device))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    total = 0.0
    for words, tags, real in loader:
        loss = model(words.to(device), tags.to(device), real.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    total = ddp.mean_all(total)
    print(f"epoch {epoch}: {total / len(loader):.4f}")
ddp.save(model.module.state_dict(), "tagger.pt")
ddp.cleanup()
