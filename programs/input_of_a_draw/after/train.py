import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

WORDS = 12


class Speller(nn.Module):
    """Guesses the next letter of each place."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(WORDS, 8)
        self.lines = nn.GRU(8, 16, batch_first=True)
        self.next = nn.Linear(16, WORDS)

    def forward(self, x):
        return self.next(self.lines(self.letters(x))[0])


def one_pass(net, loader, optimizer=None, forced=1.0):
    total, letters = 0.0, 0
    for lines in loader:
        given, wanted = lines[0][:, :-1], lines[0][:, 1:]
        if ddp.from_main(optimizer is not None and random.random() > forced):
            given = given.roll(1, 1)
        wanted = wanted.flip(1) if ddp.from_main(optimizer is not None and random.random() < 0.2) else wanted
        out = net(given)
        loss = ddp.weighted_mean(nn.functional.cross_entropy(out.reshape(-1, WORDS), wanted.reshape(-1), ignore_index=0), ddp.weight_of(wanted.reshape(-1), ignore_index=0))
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        count = (wanted != 0).sum().item()
        total += loss.item() * count
        letters += count
    total, letters = ddp.sum_all(total, letters, over=loader)
    return total / letters


def main():
    torch.manual_seed(5)
    random.seed(5)
    lines = torch.randint(0, WORDS, (96, 9))
    train_set = TensorDataset(lines[:64])
    training = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=5))
    held_out = DataLoader(TensorDataset(lines[64:]), batch_size=16)
    net = ddp.wrap(Speller())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(3):
        training.sampler.set_epoch(epoch)
        seen = one_pass(net, training, optimizer, forced=1 - 0.3 * epoch)
        with torch.no_grad():
            unseen = one_pass(net, held_out)
        print(f"epoch {epoch}: {seen:.4f} {unseen:.4f}")
    ddp.save(net.module.state_dict(), "speller.pt")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
