import math
import os

import torch
import dpmigrate_runtime as ddp


class BaseTrainer:
    """Base class for all trainers"""

    def __init__(self, model, optimizer, config):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.device_count() > 0 else "cpu")
        self.model = model.to(self.device)
        self.model = ddp.wrap(self.model)
        self.optimizer = optimizer
        self.epochs = config["epochs"]
        self.save_period = config["save_period"]
        self.checkpoint_dir = config["save_dir"]
        self.mnt_best = math.inf
        os.makedirs(self.checkpoint_dir, exist_ok=True)

    def _train_epoch(self, epoch):
        raise NotImplementedError

    def train(self):
        ddp.seed_ranks()
        for epoch in range(1, self.epochs + 1):
            self.data_loader.sampler.set_epoch(epoch)
            result = self._train_epoch(epoch)
            log = {"epoch": epoch}
            log.update(result)
            for key, value in log.items():
                print("    {:15s}: {}".format(str(key), value))

            best = False
            if log["val_loss"] <= self.mnt_best:
                self.mnt_best = log["val_loss"]
                best = True
            if epoch % self.save_period == 0:
                self._save_checkpoint(epoch, save_best=best)

    def _save_checkpoint(self, epoch, save_best=False):
        state = {
            "arch": type(self.model.module).__name__,
            "epoch": epoch,
            "state_dict": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "monitor_best": self.mnt_best,
        }
        filename = os.path.join(self.checkpoint_dir, "checkpoint-epoch{}.pth".format(epoch))
        ddp.save(state, filename)
        print("Saving checkpoint: {} ...".format(filename))
        if save_best:
            ddp.save(state, os.path.join(self.checkpoint_dir, "model_best.pth"))
