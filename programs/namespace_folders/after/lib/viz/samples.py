import os

import torch
import dpmigrate_runtime as ddp


def save_samples(model, epoch, device, folder="samples"):
    if not os.path.exists(folder):
        os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        z = torch.linspace(-1, 1, 4 * model.module.latent).view(4, model.module.latent).to(device)
        images = model.module.decode(z).cpu()
    ddp.save(images, os.path.join(folder, "sample_%d.pt" % epoch))
