import torch
from torch import optim

import lib.nets.vae as nets
from lib.data.digits import load
from lib import losses
from lib.viz.samples import save_samples

EPOCHS = 3
BATCH = 16
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

torch.manual_seed(0)
train_loader, test_loader = load(BATCH)
model = nets.VAE(36, 4).to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = losses.elbo(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, _ in test_loader:
            data = data.to(device)
            recon, mu, logvar = model(data)
            test_loss += losses.elbo(recon, data, mu, logvar).item()
    test_loss /= len(test_loader.dataset)
    print("====> Test set loss: {:.4f}".format(test_loss))


if __name__ == "__main__":
    for epoch in range(1, EPOCHS + 1):
        train(epoch)
        test(epoch)
        save_samples(model, epoch, device)
    torch.save(model.state_dict(), "vae.pth")
