import torch
import torch.nn as nn


def set_parameter_requires_grad(model, feature_extracting):
    if feature_extracting:
        for param in model.parameters():
            param.requires_grad = False


def initialize_model(num_classes, feature_extract):
    model = nn.Sequential()
    model.add_module("backbone", nn.Sequential(nn.Linear(10, 32), nn.ReLU()))
    set_parameter_requires_grad(model, feature_extract)
    model.add_module("fc", nn.Linear(32, num_classes))
    return model


def save_model(model, path, class_names):
    torch.save({"state_dict": model.state_dict(), "classes": class_names}, path)
