from .stripes import Stripes

__factory = {"stripes": Stripes}


def get_dataset(name, root="data"):
    if name not in __factory:
        raise KeyError("unknown dataset: " + name)
    cls = __factory[name]
    train_set = cls(100, seed=0)
    test_set = cls(50, seed=1)
    return train_set, test_set, cls.num_classes
