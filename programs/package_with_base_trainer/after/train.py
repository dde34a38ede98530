import argparse
import torch
from proj import trainer as T
from proj.data import make_loaders
from proj import models
import dpmigrate_runtime as ddp

if __name__ == "__main__":
    ddp.setup()
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mlp")
    args = parser.parse_args()
    torch.manual_seed(1)
    net = models.get_model(args.model)
    if torch.cuda.is_available():
        net = net.cuda()
    t = T.Trainer(net, make_loaders())
    t.fit()
    ddp.cleanup()
