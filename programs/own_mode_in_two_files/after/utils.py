import torch
import torch.distributed as dist
import dpmigrate_runtime as ddp


def start(args):
    if args.distributed:
        raise SystemExit("start this program with torchrun: its own distributed mode is switched off")
        dist.init_process_group("nccl")


def mean(args, x):
    if args.distributed:
        dist.all_reduce(x)
        x = x / dist.get_world_size()
    return x


def save(model, path):
    ddp.save(model.module.state_dict(), path)
