import importlib

from .common import Method


def method_named(name):
    module = importlib.import_module('methods.' + name)
    chosen = None
    for key, member in vars(module).items():
        if key.lower() == name and issubclass(member, Method):
            chosen = member
    if chosen is None:
        raise SystemExit('no method is called ' + name)
    return chosen
