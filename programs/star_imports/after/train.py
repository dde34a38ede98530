from tools import *
from net import Net
import dpmigrate_runtime as ddp


def main():
    torch.manual_seed(5)
    loader = loaders(20)
    net = ddp.wrap(Net())
    criterion = nn.CrossEntropyLoss()
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    ddp.seed_ranks()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            loss = criterion(net(x.to(ddp.device())), y)
            loss.backward()
            opt.step()
        print("epoch", epoch)
        store(net, "net.pth")


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
