import torch
import torch.nn.functional as F
from data import test_loader, train_loader
from net import Net
from options import args, device

torch.manual_seed(args.seed)
net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
for epoch in range(args.epochs):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (net(x.to(device)).argmax(1) == y.to(device)).sum().item()
    print("epoch", epoch, "accuracy", right / len(test_loader.dataset))
    torch.save(net.state_dict(), "net.pt")
