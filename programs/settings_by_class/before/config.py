import torch


class Config:
    SEED = 12
    EPOCHS = 10
    BATCH_SIZE = 8
    LR = 5e-3
    LATENT = 6
    OUTPUT = "states.pt"
    DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def merge(self, options):
        for key, value in options.items():
            if not hasattr(self, key):
                raise AttributeError(key)
            setattr(self, key, value)


cfg = Config()
