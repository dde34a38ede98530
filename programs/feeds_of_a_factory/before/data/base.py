from torch.utils.data import Dataset


class Base(Dataset):
    def __init__(self, opt):
        self.opt = opt
