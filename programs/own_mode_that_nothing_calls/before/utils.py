import torch.distributed as dist


def log(*a):
    print(*a)


def init_ddp():
    dist.init_process_group("nccl")
