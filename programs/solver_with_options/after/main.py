import argparse
from solver import Solver
from data_loader import get_loader
import dpmigrate_runtime as ddp


def main(config):
    loader = get_loader(config.batch_size, config.num_workers)
    solver = Solver(loader, config)
    if config.mode == "train":
        solver.train()
    elif config.mode == "test":
        solver.test()


if __name__ == "__main__":
    ddp.setup()
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--num_workers", type=int, default=0)
    parser.add_argument("--iters", type=int, default=9)
    parser.add_argument("--mode", type=str, default="train", choices=["train", "test"])
    config = parser.parse_args()
    print(config)
    main(config)
    ddp.cleanup()
