"""Turns a row of digits round: an encoder and a decoder, called by methods of the model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import dpmigrate_runtime as ddp

PAD, START = 0, 1


class Reversed(Dataset):
    def __init__(self, n, length=6):
        g = torch.Generator().manual_seed(n)
        self.rows = torch.randint(2, 12, (n, length), generator=g)
        self.lengths = torch.randint(3, length + 1, (n,), generator=g)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i].clone()
        row[self.lengths[i] :] = PAD
        back = row.flip(0)
        start = torch.cat([torch.tensor([START]), back[:-1]])
        return {"source": row, "target": start, "label": back, "mask": (row != PAD).unsqueeze(0)}


class Positions(nn.Module):
    def __init__(self, length, size, dropout):
        super().__init__()
        places = torch.arange(length).unsqueeze(1) / torch.arange(1, size + 1)
        self.register_buffer("table", torch.sin(places).unsqueeze(0))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + (self.table[:, : x.shape[1], :]).requires_grad_(False)
        return self.dropout(x)


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, size, bias=False)
        self.v = nn.Linear(size, size, bias=False)

    def forward(self, x, memory, mask):
        mask.requires_grad = False
        scores = self.q(x) @ self.k(memory).transpose(-2, -1) / x.shape[-1] ** 0.5
        scores.masked_fill_(mask == 0, -1e9)
        return x + scores.softmax(dim=-1) @ self.v(memory)


class Transformer(nn.Module):
    def __init__(self, encoder, decoder, source, target, places, out):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.source, self.target = source, target
        self.places = places
        self.out = out

    def encode(self, row, mask):
        x = self.places(self.source(row))
        for layer in self.encoder:
            x = layer(x, x, mask)
        return x

    def decode(self, memory, mask, row):
        x = self.places(self.target(row))
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return x

    def project(self, x):
        return self.out(x)


def build(size=16, layers=2):
    encoder = nn.ModuleList([Attention(size) for _ in range(layers)])
    decoder = nn.ModuleList([Attention(size) for _ in range(layers)])
    parts = nn.Embedding(12, size), nn.Embedding(12, size), Positions(6, size, 0.0), nn.Linear(size, 12)
    model = Transformer(encoder, decoder, *parts)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    return model


def validate(model, loader, device):
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in loader:
            mask = batch["mask"].to(device)
            memory = model.module.encode(batch["source"].to(device), mask)
            out = model.module.project(model.module.decode(memory, mask, batch["target"].to(device)))
            right += (out.argmax(-1) == batch["label"].to(device)).sum().item()
    return right


def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = Reversed(64)
    train_loader = DataLoader(train_set, batch_size=ddp.local_batch(16), drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True, seed=3))
    val_loader = DataLoader(Reversed(20), batch_size=1)
    model = ddp.wrap(build().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-9)
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1).to(device)
    ddp.seed_ranks()
    for epoch in range(2):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for batch in train_loader:
            mask = batch["mask"].to(device)
            memory = ddp.method(model, "encode")(batch["source"].to(device), mask)
            decoded = ddp.method(model, "decode")(memory, mask, batch["target"].to(device))
            out = ddp.method(model, "project")(decoded)
            label = batch["label"].to(device)
            loss = ddp.weighted_mean(loss_fn(out.view(-1, 12), label.view(-1)), ddp.weight_of(label.view(-1), weight=loss_fn.weight, ignore_index=loss_fn.ignore_index))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        print(f"epoch {epoch}: {validate(model, val_loader, device)} right")
        ddp.save({"epoch": epoch, "model": model.module.state_dict()}, f"weights_{epoch}.pt")


if __name__ == "__main__":
    ddp.setup()
    torch.manual_seed(3)
    train()
    ddp.cleanup()
