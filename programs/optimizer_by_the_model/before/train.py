import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset, DataLoader


class Chars(Dataset):
    def __init__(self, n=256, block=16):
        g = torch.Generator().manual_seed(0)
        self.data = torch.randint(0, 32, (n, block + 1), generator=g)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i, :-1], self.data[i, 1:]


class Config:
    lr = 3e-4
    betas = (0.9, 0.95)
    weight_decay = 0.1
    batch_size = 32
    epochs = 2
    clip = 1.0

    def __init__(self, **kw):
        for k, v in kw.items():
            setattr(self, k, v)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.fc = nn.Linear(16, 16)
        self.ln = nn.LayerNorm(16)
        self.head = nn.Linear(16, 32, bias=False)

    def configure_optimizers(self, config):
        decay, no_decay = set(), set()
        for mn, m in self.named_modules():
            for pn, p in m.named_parameters(recurse=False):
                fpn = f"{mn}.{pn}" if mn else pn
                if pn.endswith("bias") or isinstance(m, (nn.LayerNorm, nn.Embedding)):
                    no_decay.add(fpn)
                else:
                    decay.add(fpn)
        params = {pn: p for pn, p in self.named_parameters()}
        groups = [
            {"params": [params[pn] for pn in sorted(decay)], "weight_decay": config.weight_decay},
            {"params": [params[pn] for pn in sorted(no_decay)], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas)

    def forward(self, x, y=None):
        h = self.ln(torch.relu(self.fc(self.emb(x))))
        logits = self.head(h)
        loss = None
        if y is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        return logits, loss


class Trainer:
    def __init__(self, model, train_dataset, test_dataset, config):
        self.model = model
        self.train_dataset = train_dataset
        self.test_dataset = test_dataset
        self.config = config
        self.device = "cpu"
        if torch.cuda.is_available():
            self.device = torch.cuda.current_device()
            self.model = torch.nn.DataParallel(self.model).to(self.device)

    def save(self):
        raw_model = self.model.module if hasattr(self.model, "module") else self.model
        torch.save(raw_model.state_dict(), "gpt.pt")

    def train(self):
        model, config = self.model, self.config
        raw_model = model.module if hasattr(self.model, "module") else model
        optimizer = raw_model.configure_optimizers(config)

        def run_epoch(split):
            is_train = split == "train"
            model.train(is_train)
            data = self.train_dataset if is_train else self.test_dataset
            loader = DataLoader(data, shuffle=True, pin_memory=True, batch_size=config.batch_size)
            losses = []
            for it, (x, y) in enumerate(loader):
                x, y = x.to(self.device), y.to(self.device)
                with torch.set_grad_enabled(is_train):
                    logits, loss = model(x, y)
                    loss = loss.mean()
                    losses.append(loss.item())
                if is_train:
                    model.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
                    optimizer.step()
            if not is_train:
                return sum(losses) / len(losses)

        best = float("inf")
        for epoch in range(config.epochs):
            run_epoch("train")
            test_loss = run_epoch("test")
            print("test", test_loss)
            if test_loss < best:
                best = test_loss
                self.save()


def main():
    torch.manual_seed(0)
    trainer = Trainer(GPT(), Chars(), Chars(64), Config(epochs=2))
    trainer.train()


if __name__ == "__main__":
    main()
