import argparse
import sys
from pathlib import Path
import dpmigrate_runtime as ddp

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from core.config import load_config
from core.data import build_dataloader
from core.function import do_train
from core.losses import build_criterion
from core.modeling import build_model
from core.solver import make_lr_scheduler, make_optimizer
from core.utils import setup_logger, set_seed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="")
    parser.add_argument("opts", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    cfg = load_config(args.config, args.opts)
    set_seed(cfg["SEED"])
    logger = setup_logger("core")
    logger.info("Running with %s", cfg)

    loaders = build_dataloader(cfg)
    model = build_model(cfg)
    optimizer = make_optimizer(cfg, model)
    scheduler = make_lr_scheduler(cfg, optimizer, len(loaders[0]))
    criterion = build_criterion(cfg)
    do_train(cfg, model, loaders, optimizer, scheduler, criterion)


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
