import torch
from torch.utils.data import DataLoader
from net import Net, data
import dpmigrate_runtime as ddp
def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in ddp.shard(loader):
            right += (ddp.unwrap(model)(x).argmax(1) == y).sum().item()
        right = ddp.sum_all(right)
    return right / len(loader.dataset)
def main():
    model = Net()
    model.load_state_dict(torch.load("m.pth"))
    print(evaluate(model, DataLoader(data(), batch_size=8)))
if __name__ == "__main__":
    main()
