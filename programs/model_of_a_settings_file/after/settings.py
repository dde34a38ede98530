"""What all scripts share."""

import torch
from torch import nn
import dpmigrate_runtime as ddp

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NETWORK = ddp.wrap(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)).to(DEVICE))
CRITERION = nn.MSELoss()
