import os

import torch

from common.data import get_loaders
from common.engine import run_epoch, accuracy
from common.io import save_model
from common.net import Net

torch.manual_seed(2)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main(epochs=2):
    loader, test_loader = get_loaders(task="sign", batch_size=8)
    net = Net(8, 2)
    if os.path.exists("base.pt"):
        net.load_state_dict(torch.load("base.pt"))
    for p in net.body.parameters():
        p.requires_grad = False
    net.head = torch.nn.Linear(16, 2)
    net.to(device)
    optimizer = torch.optim.Adam(net.head.parameters(), lr=0.01)
    for epoch in range(epochs):
        loss = run_epoch(net, loader, optimizer, device)
        print(epoch, "loss %.4f" % loss, "accuracy %.3f" % accuracy(net, test_loader, device))
    save_model(net, "tuned.pt")


if __name__ == "__main__":
    main()
