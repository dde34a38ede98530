import argparse
import random

import torch
import torch.nn as nn

from visits import Visits
import dpmigrate_runtime as ddp


class Taste(nn.Module):
    def __init__(self, guests, places, factors=6):
        super().__init__()
        self.guest = nn.Embedding(guests, factors)
        self.place = nn.Embedding(places, factors)

    def forward(self, pairs):
        return (self.guest(pairs[:, 0]) * self.place(pairs[:, 1])).sum(1)


ddp.setup()
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()

random.seed(11)
torch.manual_seed(11)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
visits = Visits(14, 25, seed=2)
model = ddp.wrap(Taste(14, 25).to(device))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.BCEWithLogitsLoss()
ddp.seed_ranks()
for epoch in range(args.epochs):
    model.train()
    with ddp.same_stream():
        loader = visits.epoch(beside=2, batch_size=16)
    loader.sampler.set_epoch(epoch)
    for pairs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(pairs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for (pairs,) in ddp.shard(visits.check()):
            hits += (model.module(pairs.to(device)) > 0).sum().item()
        hits = ddp.sum_all(hits)
    print(f"epoch {epoch}: {len(loader.dataset)} pairs, {hits} hits")
ddp.save(model.module.state_dict(), "taste.pt")
ddp.cleanup()
