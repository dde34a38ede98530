import os

import torch


def save_samples(model, epoch, device, folder="samples"):
    if not os.path.exists(folder):
        os.mkdir(folder)
    with torch.no_grad():
        z = torch.linspace(-1, 1, 4 * model.latent).view(4, model.latent).to(device)
        images = model.decode(z).cpu()
    torch.save(images, os.path.join(folder, "sample_%d.pt" % epoch))
