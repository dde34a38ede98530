import torch
import dpmigrate_runtime as ddp


@torch.no_grad()
def predict(model, loader, device):
    model.eval()
    outputs = []
    for x, _ in ddp.shard(loader, blocks=True):
        outputs.append(model.module(x.to(device)).cpu())
    outputs = ddp.gather_all(outputs)
    outputs = torch.cat(outputs)
    print("predicted", len(outputs), "values, mean %.4f" % outputs.mean().item())
    ddp.save(outputs, "predictions.pt")
