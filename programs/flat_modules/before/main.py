import argparse

import torch

import engine as eng
from data import get_loaders
from model import build
from utils import save_checkpoint


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    args = p.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_loader, test_loader = get_loaders(args.batch_size)
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        loss = eng.train_one_epoch(model, train_loader, optimizer, device)
        acc = eng.evaluate(model, test_loader, device)
        print(f"epoch {epoch} loss {loss:.4f} acc {acc:.4f}")
        save_checkpoint(model, optimizer, epoch)


if __name__ == "__main__":
    main()
