from torch import nn


class Base(nn.Module):
    num_classes = 2

    def loss(self, out, y):
        return nn.functional.cross_entropy(out, y)
