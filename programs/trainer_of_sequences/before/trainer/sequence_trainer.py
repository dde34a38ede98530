import torch

from base import BaseTrainer


class SequenceTrainer(BaseTrainer):
    def __init__(self, model, optimizer, config, data_loader, valid_data_loader=None):
        super().__init__(model, optimizer, config)
        self.data_loader = data_loader
        self.valid_data_loader = valid_data_loader
        self.clip = config["clip"]

    def _train_epoch(self, epoch):
        self.model.train()
        total_loss = 0
        for batch_idx, (data, target) in enumerate(self.data_loader):
            data, target = data.to(self.device), target.to(self.device)
            model = self.model.module if isinstance(self.model, torch.nn.DataParallel) else self.model
            hidden = model.init_hidden(data.size(0))

            self.optimizer.zero_grad()
            output, hidden = self.model(data, hidden)
            loss = model.loss(output, target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            total_loss += loss.item()

        log = {"loss": total_loss / len(self.data_loader)}
        if self.valid_data_loader is not None:
            log.update(self._valid_epoch(epoch))
        return log

    def _valid_epoch(self, epoch):
        self.model.eval()
        total_val_loss = 0
        with torch.no_grad():
            for data, target in self.valid_data_loader:
                data, target = data.to(self.device), target.to(self.device)
                model = self.model.module if isinstance(self.model, torch.nn.DataParallel) else self.model
                output, _ = self.model(data, model.init_hidden(data.size(0)))
                total_val_loss += model.loss(output, target).item()
        return {"val_loss": total_val_loss / len(self.valid_data_loader)}
