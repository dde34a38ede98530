import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from trainer import Trainer

if __name__ == "__main__":
    torch.manual_seed(0)
    inputs = torch.randn(64, 10)
    loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
    model = nn.Linear(10, 2)
    Trainer(model, loader).fit(2)
    torch.save(model.state_dict(), "model.pt")
