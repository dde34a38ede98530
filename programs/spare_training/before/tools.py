import json

import torch


def create_optimizer(model, args):
    return torch.optim.SGD(model.parameters(), lr=args.lr)


def described(args):
    return json.dumps(vars(args), sort_keys=True)
