import importlib

from torch import nn


def get_dataset(name, split, options):
    module = importlib.import_module("data." + name)
    return module.Data(split, **options)


def get_model(options, inputs, classes):
    layers = []
    for hidden in options["hidden"]:
        layers += [nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(options["dropout"])]
        inputs = hidden
    return nn.Sequential(*layers, nn.Linear(inputs, classes))
