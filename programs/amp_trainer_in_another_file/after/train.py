import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from trainer import Trainer
import dpmigrate_runtime as ddp

if __name__ == "__main__":
    ddp.setup()
    torch.manual_seed(0)
    inputs = torch.randn(64, 10)
    train_set = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))
    model = nn.Linear(10, 2)
    Trainer(model, loader).fit(2)
    ddp.save(model.state_dict(), "model.pt")
    ddp.cleanup()
