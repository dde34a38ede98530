from tools import *
from net import Net


def main():
    torch.manual_seed(5)
    loader = loaders(20)
    net = nn.DataParallel(Net())
    criterion = nn.CrossEntropyLoss()
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        for x, y in loader:
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
        print("epoch", epoch)
        store(net, "net.pth")


if __name__ == "__main__":
    main()
