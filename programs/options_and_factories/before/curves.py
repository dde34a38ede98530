import importlib


class Curves:
    def __init__(self, folder, library):
        self.writer = None
        try:
            self.writer = importlib.import_module(library).SummaryWriter(str(folder))
        except ImportError:
            print("no curves:", library, "is not installed")

    def add(self, name, value, step):
        if self.writer is not None:
            self.writer.add_scalar(name, value, step)
