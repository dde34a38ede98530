import logging
import os

import torch
from torch import nn

from core.utils import AverageMeter
import dpmigrate_runtime as ddp


def do_train(cfg, model, loaders, optimizer, scheduler, criterion):
    logger = logging.getLogger("core.train")
    device = cfg["DEVICE"] if torch.cuda.is_available() else "cpu"
    if device == "cuda" and torch.cuda.device_count() > 1:
        logger.info("Using %d GPUs for training", torch.cuda.device_count())
    model = ddp.wrap(model.to(device))
    model.to(device)
    train_loader, val_loader = loaders
    loss_meter, acc_meter = AverageMeter(), AverageMeter()
    best = 0.0
    if not os.path.isdir(cfg["OUTPUT"]):
        os.makedirs(cfg["OUTPUT"], exist_ok=True)

    ddp.seed_ranks()
    for epoch in range(1, cfg["EPOCHS"] + 1):
        train_loader.sampler.set_epoch(epoch)
        loss_meter.reset()
        acc_meter.reset()
        model.train()
        for n_iter, (point, label) in enumerate(train_loader):
            optimizer.zero_grad()
            point, label = point.to(device), label.to(device)
            score = model(point)
            loss = criterion(score, label)
            loss.backward()
            optimizer.step()
            scheduler.step()
            acc = (score.max(1)[1] == label).float().mean()
            loss_meter.update(loss.item(), point.shape[0])
            acc_meter.update(acc.item(), 1)
        loss_meter.sum, loss_meter.count = ddp.sum_all(loss_meter.sum, loss_meter.count)
        acc_meter.sum = ddp.mean_all(acc_meter.sum)
        logger.info("Epoch[%d] Loss: %.3f, Acc: %.3f, Lr: %.2e", epoch, loss_meter.avg, acc_meter.avg, scheduler.get_last_lr()[0])

        mean = do_validate(model, val_loader, device)
        logger.info("Validation: %.3f", mean)
        if mean >= best:
            best = mean
            state = model.module.state_dict() if hasattr(model, "module") else model.state_dict()
            ddp.save(state, os.path.join(cfg["OUTPUT"], "best_model.pth"))


def do_validate(model, loader, device):
    model.eval()
    correct, total = 0, 0
    ddp.sync_buffers(model)
    for point, label in ddp.shard(loader):
        with torch.no_grad():
            score = model.module(point.to(device))
        correct += (score.argmax(1).cpu() == label).sum().item()
        total += label.numel()
    correct, total = ddp.sum_all(correct, total)
    return correct / total
