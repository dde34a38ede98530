import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

torch.manual_seed(0)
inputs = torch.randn(64, 10)
targets = (inputs.sum(1) > 0).long()
train_set = TensorDataset(inputs, targets)
loader = DataLoader(train_set, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(train_set, seed=0))
