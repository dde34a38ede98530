import os
import random
import time

import numpy as np
import torch


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def ensure_dir(path):
    if not os.path.isdir(path):
        os.makedirs(path)


class Timer:
    def __init__(self):
        self.start = time.time()

    def stop(self, what):
        if time.time() - self.start > 3600:
            print(what, "took more than an hour")
