import torch
import torch.distributed as dist


def start(args):
    if args.distributed:
        dist.init_process_group("nccl")


def mean(args, x):
    if args.distributed:
        dist.all_reduce(x)
        x = x / dist.get_world_size()
    return x


def save(model, path):
    torch.save(model.module.state_dict(), path)
