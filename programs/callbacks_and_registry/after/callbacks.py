import json

import torch
import dpmigrate_runtime as ddp


class Callback:
    def before_fit(self, learner):
        pass

    def after_epoch(self, learner):
        pass


class History(Callback):
    def __init__(self, path):
        self.path = path
        self.losses = {"train": [], "valid": []}

    def after_epoch(self, learner):
        self.losses["train"].append(learner.train_loss)
        self.losses["valid"].append(learner.valid_loss)
        print(f"epoch {learner.epoch}: train {learner.train_loss:.4f} valid {learner.valid_loss:.4f}")
        with open(ddp.main_path(self.path), "w") as f:
            json.dump(self.losses, f)


class ModelCheckpoint(Callback):
    def __init__(self, path):
        self.path = path
        self.best = float("inf")

    def after_epoch(self, learner):
        if learner.valid_loss < self.best:
            self.best = learner.valid_loss
            ddp.save(learner.model.module.state_dict(), self.path)


class EarlyStopping(Callback):
    def __init__(self, patience):
        self.patience = patience

    def before_fit(self, learner):
        self.best = float("inf")
        self.bad = 0

    def after_epoch(self, learner):
        if learner.valid_loss < self.best - 1e-4:
            self.best, self.bad = learner.valid_loss, 0
        else:
            self.bad += 1
            learner.stop = self.bad >= self.patience
