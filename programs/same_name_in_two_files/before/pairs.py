from torch.utils.data import DataLoader, TensorDataset

from data import inputs

pair_loader = DataLoader(TensorDataset(inputs, inputs.abs()), batch_size=16, shuffle=True)
