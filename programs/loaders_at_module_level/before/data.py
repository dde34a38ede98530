import torch
from torch.utils.data import DataLoader, TensorDataset

g = torch.Generator().manual_seed(3)
inputs = torch.randn(80, 6, generator=g)
targets = (inputs[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:64], targets[:64]), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(inputs[64:], targets[64:]), batch_size=16)
