import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

g = torch.Generator().manual_seed(3)
inputs = torch.randn(80, 6, generator=g)
targets = (inputs[:, 0] > 0).long()
train_set = TensorDataset(inputs[:64], targets[:64])
_train = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set))
_test = DataLoader(TensorDataset(inputs[64:], targets[64:]), batch_size=16)


def build():
    return _train, _test
