import os

import torch
import dpmigrate_runtime as ddp

try:
    from tqdm import tqdm
except ImportError:
    tqdm = lambda x, **kwargs: x

try:
    import local_settings as settings
except ImportError:
    import settings


def run_epoch(model, loader, loss_fn, optimizer=None):
    is_train = optimizer is not None
    model.train(is_train)
    total, count = 0.0, 0
    with torch.set_grad_enabled(is_train):
        for x, y in tqdm(loader, leave=False):
            x, y = x.to(settings.DEVICE), y.to(settings.DEVICE)
            loss = loss_fn(model(x), y)
            if is_train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
            count += len(x)
        total, count = ddp.sum_all(total, count, over=loader)
    return total / count


def main():
    from data import make_loader
    from nets import build
    from stopping import EarlyStopping

    torch.manual_seed(settings.SEED)
    train_loader = ddp.distribute(make_loader("train", settings.BATCH_SIZE))
    valid_loader = ddp.distribute(make_loader("valid", settings.BATCH_SIZE))
    model = ddp.wrap(build(settings.ARCH).to(settings.DEVICE))
    loss_fn = torch.nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.LR)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    stopper = EarlyStopping(patience=2, path="best.pt")

    with ddp.own_streams():
        for epoch in range(settings.EPOCHS):
            train_loader.sampler.set_epoch(epoch)
            train_loss = run_epoch(model, train_loader, loss_fn, optimizer)
            valid_loss = run_epoch(model, valid_loader, loss_fn)
            scheduler.step(ddp.mean_all(valid_loss))
            print(f"[{epoch}] train {train_loss:.5f} valid {valid_loss:.5f}")
            stopper(valid_loss, model)
            if ddp.from_main(stopper.early_stop):
                print("Early stopping")
                break

    ddp.barrier()
    model.module.load_state_dict(torch.load("best.pt", map_location=ddp.device()))
    from report import predict

    predict(model, make_loader("valid", 10), settings.DEVICE)


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
