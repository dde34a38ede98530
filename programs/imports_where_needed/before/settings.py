import torch

SEED = 5
BATCH_SIZE = 8
LR = 0.02
EPOCHS = 6
ARCH = "two"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
