from .loaders import make_loaders
