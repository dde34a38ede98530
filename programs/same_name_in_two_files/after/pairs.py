from torch.utils.data import DataLoader, TensorDataset

from data import inputs
import dpmigrate_runtime as ddp

train_set_2 = TensorDataset(inputs, inputs.abs())
pair_loader = DataLoader(train_set_2, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set_2, seed=1000))
