import argparse

import torch
import torch.nn.functional as F

from datasets import get_dataset
from models import create_model
import dpmigrate_runtime as ddp

ddp.setup()
parser = argparse.ArgumentParser(description="Train a classifier")
parser.add_argument("--arch", default="conv", choices=["conv", "mlp", "attention"])
parser.add_argument("--dataset", default="stripes")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--no_cuda", action="store_true")
opt = parser.parse_args()
opt.cuda = not opt.no_cuda and torch.cuda.is_available()

torch.manual_seed(11)
if opt.cuda:
    torch.cuda.manual_seed_all(11)

train_set, test_set, num_classes = get_dataset(opt.dataset)
train_loader = torch.utils.data.DataLoader(train_set, batch_size=ddp.local_batch(opt.batch_size), drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True, seed=11))
test_loader = torch.utils.data.DataLoader(test_set, batch_size=opt.batch_size)

model = create_model(opt.arch, num_classes, opt)
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(params, lr=3e-3)


def train(epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        if opt.cuda:
            data, target = data.cuda(), target.cuda()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 2 == 0:
            print("Train Epoch: {} [{}/{}]\tLoss: {:.6f}".format(epoch, batch_idx * len(data) * ddp.world_size(), len(train_loader.dataset), loss.item()))


def test():
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in ddp.shard(test_loader):
            if opt.cuda:
                data, target = data.cuda(), target.cuda()
            output = model.module(data)
            test_loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += output.max(1)[1].eq(target).sum().item()
        test_loss, correct = ddp.sum_all(test_loss, correct)
    test_loss /= len(test_loader.dataset)
    print("Test: loss {:.4f}, accuracy {}/{}".format(test_loss, correct, len(test_loader.dataset)))
    return correct / len(test_loader.dataset)


best = 0
ddp.seed_ranks()
for epoch in range(1, opt.epochs + 1):
    train_loader.sampler.set_epoch(epoch)
    train(epoch)
    acc = test()
    if acc > best:
        best = acc
        net = model.module if hasattr(model, "module") else model
        ddp.save({"arch": opt.arch, "net": net.state_dict(), "acc": acc}, "%s_best.pth" % opt.arch)
ddp.cleanup()
