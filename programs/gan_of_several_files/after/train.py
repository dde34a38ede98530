import torch

from models import discriminator, generator
from steps import Steps
from dataset import get_dataloader
import dpmigrate_runtime as ddp


def run(epochs=2):
    torch.manual_seed(4)
    dataloader = get_dataloader(16)
    G, D = generator.Generator(4), discriminator.Discriminator()
    steps = Steps(G, D)
    ddp.seed_ranks()
    for epoch in range(epochs):
        dataloader.sampler.set_epoch(epoch)
        for i, (real,) in enumerate(dataloader):
            d = steps.discriminator(real)
            g = steps.generator(real.size(0))
        print("epoch", epoch)
    ddp.save(G.state_dict(), "G.pt")
    ddp.save(D.state_dict(), "D.pt")


if __name__ == "__main__":
    ddp.setup()
    run()
    ddp.cleanup()
