"""One rank of a job on GPUs: which device the runtime chose, and whether the ranks reach each other."""

from __future__ import annotations

import dpmigrate_runtime as ddp
import torch
import torch.distributed as dist

ddp.setup()
own = ddp.local_rank()
assert dist.get_backend() == "nccl", dist.get_backend()
assert ddp.device() == torch.device("cuda", own), ddp.device()
assert torch.cuda.current_device() == own, torch.cuda.current_device()

layer = torch.nn.Linear(3, 1).cuda()
model = ddp.wrap(layer)
assert {p.device for p in model.parameters()} == {ddp.device()}
with torch.autocast(ddp.device().type, dtype=torch.float16):
    loss = model(torch.full((4, 3), float(own), device="cuda")).float().mean()  # the scale is beyond what float16 holds
scaler = torch.amp.GradScaler(ddp.device().type)
scaler.scale(loss).backward()
# the mean over the ranks of d loss / d weight, which is the rank's own number
middle = (ddp.world_size() - 1) / 2
assert layer.weight.grad is not None
assert torch.allclose(layer.weight.grad / scaler.get_scale(), torch.tensor(middle, device="cuda"), atol=1e-3)

# numbers of the CPU go through NCCL too
assert ddp.sum_all(own + 1) == ddp.world_size() * (ddp.world_size() + 1) // 2
assert ddp.any_rank(own == ddp.world_size() - 1)
print("ranks", ddp.world_size())
ddp.cleanup()
