import json
import pathlib
import time


class Options:
    """What a JSON file says of one run."""

    def __init__(self, values, again=False):
        self.values = values
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.folder = pathlib.Path(values["folder"]) / values["name"] / stamp
        self.folder.mkdir(parents=True, exist_ok=again)

    @classmethod
    def read(cls, path):
        with open(path) as f:
            return cls(json.load(f))

    def make(self, part, holder, *given):
        """An object of the class that the options name for this part, looked up in the module."""
        wanted = self.values[part]
        return getattr(holder, wanted["kind"])(*given, **wanted.get("with", {}))
