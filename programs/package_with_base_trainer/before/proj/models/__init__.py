from .mlp import MLP
from .linear import Linear as LinearNet


def get_model(name):
    if name == "mlp":
        return MLP()
    elif name == "linear":
        return LinearNet()
    raise ValueError(name)
