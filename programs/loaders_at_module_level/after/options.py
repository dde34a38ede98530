import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
