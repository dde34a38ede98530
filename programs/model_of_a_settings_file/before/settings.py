"""What all scripts share."""

import torch
from torch import nn

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
NETWORK = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)).to(DEVICE)
CRITERION = nn.MSELoss()
