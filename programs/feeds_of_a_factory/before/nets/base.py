import torch


class BaseNet:
    def __init__(self, opt):
        self.opt = opt
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.names = []

    def take(self, batch):
        self.a = batch["A"].to(self.device)
        self.b = batch["B"].to(self.device)

    def save(self, path):
        torch.save(self.net.state_dict(), path)
