import json
import pathlib
import time
import dpmigrate_runtime as ddp


class Options:
    """What a JSON file says of one run."""

    def __init__(self, values, again=False):
        self.values = values
        stamp = ddp.from_main(time.strftime("%Y%m%d-%H%M%S"))
        self.folder = pathlib.Path(values["folder"]) / values["name"] / stamp
        with ddp.main_first():
            self.folder.mkdir(parents=True, exist_ok=again or not ddp.is_main())

    @classmethod
    def read(cls, path):
        with open(path) as f:
            return cls(json.load(f))

    def make(self, part, holder, *given):
        """An object of the class that the options name for this part, looked up in the module."""
        wanted = self.values[part]
        return getattr(holder, wanted["kind"])(*given, **wanted.get("with", {}))
