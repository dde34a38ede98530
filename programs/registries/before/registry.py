class Registry:
    """Classes and functions by name."""

    def __init__(self, what):
        self.what = what
        self.entries = {}

    def register(self, name):
        def keep(entry):
            self.entries[name] = entry
            return entry

        return keep

    def get(self, name):
        if name not in self.entries:
            raise KeyError(f"no {self.what} is called {name}")
        return self.entries[name]

    def build(self, name, *args, **kwargs):
        return self.get(name)(*args, **kwargs)


MODELS = Registry("model")
LOSSES = Registry("loss")
TRAINERS = Registry("trainer")
