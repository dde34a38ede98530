import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 10)
targets = (inputs.sum(1) > 0).long()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=8, shuffle=True)
