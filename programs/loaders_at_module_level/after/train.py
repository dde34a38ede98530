import torch
import torch.nn.functional as F
import dpmigrate_runtime as ddp
ddp.setup()
from data import test_loader, train_loader
from net import Net
from options import args, device

torch.manual_seed(args.seed)
net = ddp.wrap(Net().to(device))
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
ddp.seed_ranks()
for epoch in range(args.epochs):
    train_loader.sampler.set_epoch(epoch)
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in ddp.shard(test_loader):
            right += (net.module(x.to(device)).argmax(1) == y.to(device)).sum().item()
        right = ddp.sum_all(right)
    print("epoch", epoch, "accuracy", right / len(test_loader.dataset))
    ddp.save(net.module.state_dict(), "net.pt")
ddp.cleanup()
