import torch

from models import discriminator, generator
from steps import Steps
from dataset import get_dataloader


def run(epochs=2):
    torch.manual_seed(4)
    dataloader = get_dataloader(16)
    G, D = generator.Generator(4), discriminator.Discriminator()
    steps = Steps(G, D)
    for epoch in range(epochs):
        for i, (real,) in enumerate(dataloader):
            d = steps.discriminator(real)
            g = steps.generator(real.size(0))
        print("epoch", epoch)
    torch.save(G.state_dict(), "G.pt")
    torch.save(D.state_dict(), "D.pt")


if __name__ == "__main__":
    run()
