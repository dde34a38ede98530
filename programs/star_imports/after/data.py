from common import *
import dpmigrate_runtime as ddp


def loaders(batch):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(60, 6, generator=g)
    y = (x[:, 0] > 0).long()
    train_set = TensorDataset(x, y)
    return DataLoader(train_set, batch_size=ddp.local_batch(batch), sampler=ddp.DistributedSampler(train_set))
