import json
import os
import sys

import torch

from core.build import get_dataset, get_model
from core.loops import predict, train
from core.misc import ensure_dir, set_seed
import dpmigrate_runtime as ddp

HERE = os.path.dirname(os.path.abspath(__file__))


def main(path):
    with open(path) as f:
        config = json.load(f)
    set_seed(config["seed"])
    ensure_dir(config["output_dir"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set = get_dataset(config["dataset"], "train", config["data"])
    test_set = get_dataset(config["dataset"], "test", config["data"])
    train_loader = torch.utils.data.DataLoader(train_set, batch_size=ddp.local_batch(config["batch_size"]), drop_last=True, sampler=ddp.DistributedSampler(train_set, drop_last=True))
    test_loader = torch.utils.data.DataLoader(test_set, batch_size=config["batch_size"], shuffle=False)

    model = get_model(config["model"], train_set[0][0].numel(), len(train_set.classes))
    model = ddp.wrap(model.to(device))
    train(model, train_loader, config, device)
    predict(model, test_loader, config, device, test_set.classes)


if __name__ == "__main__":
    ddp.setup()
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "config.json"))
    ddp.cleanup()
