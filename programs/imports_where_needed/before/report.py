import torch


@torch.no_grad()
def predict(model, loader, device):
    model.eval()
    outputs = []
    for x, _ in loader:
        outputs.append(model(x.to(device)).cpu())
    outputs = torch.cat(outputs)
    print("predicted", len(outputs), "values, mean %.4f" % outputs.mean().item())
    torch.save(outputs, "predictions.pt")
