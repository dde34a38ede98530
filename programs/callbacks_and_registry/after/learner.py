import torch
import dpmigrate_runtime as ddp


class Learner:
    def __init__(self, model, loss_func, opt, callbacks):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = ddp.wrap(model.to(self.device))
        self.loss_func, self.opt, self.callbacks = loss_func, opt, callbacks
        self.stop = False

    def notify(self, name):
        for cb in self.callbacks:
            getattr(cb, name)(self)

    def one_epoch(self, dl, train):
        self.model.train(train)
        total, n = 0.0, 0
        for xb, yb in dl:
            xb, yb = xb.to(self.device), yb.to(self.device)
            with torch.set_grad_enabled(train):
                loss = self.loss_func(self.model(xb), yb)
            if train:
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
            total += loss.item() * len(xb)
            n += len(xb)
        total, n = ddp.sum_all(total, n, over=dl)
        return total / n

    def fit(self, epochs, train_dl, valid_dl):
        self.notify("before_fit")
        ddp.seed_ranks()
        for self.epoch in range(epochs):
            train_dl.sampler.set_epoch(self.epoch)
            self.train_loss = self.one_epoch(train_dl, True)
            self.valid_loss = self.one_epoch(valid_dl, False)
            self.notify("after_epoch")
            if ddp.any_rank(self.stop):
                break
