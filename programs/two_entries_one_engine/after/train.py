import torch

from common.data import get_loaders
from common.engine import run_epoch, accuracy
from common.io import save_model
from common.net import Net
import dpmigrate_runtime as ddp

ddp.setup()
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main(epochs=3):
    loader, test_loader = get_loaders(task="parity", batch_size=16)
    net = ddp.wrap(Net(8, 2).to(device))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    ddp.seed_ranks()
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        loss = run_epoch(net, loader, optimizer, device)
        print(epoch, "loss %.4f" % loss, "accuracy %.3f" % accuracy(net, test_loader, device))
    save_model(net, "base.pt")


if __name__ == "__main__":
    main()
    ddp.cleanup()
