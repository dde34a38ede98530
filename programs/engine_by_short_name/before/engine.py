import torch

from utils import AverageMeter, accuracy


def train_one_epoch(loader, model, criterion, optimizer, epoch, device, print_freq=2):
    losses = AverageMeter()
    top1 = AverageMeter()
    model.train()
    for i, (images, target) in enumerate(loader):
        images = images.to(device)
        target = target.to(device)

        output = model(images)
        loss = criterion(output, target)
        prec1 = accuracy(output, target)

        losses.update(loss.item(), images.size(0))
        top1.update(prec1, images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if i % print_freq == 0:
            print("Epoch: [{0}][{1}/{2}]\tLoss {loss.val:.4f} ({loss.avg:.4f})".format(epoch, i, len(loader), loss=losses))
    return losses.avg, top1.avg


def evaluate(loader, model, criterion, device):
    losses = AverageMeter()
    top1 = AverageMeter()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target), images.size(0))
    return losses.avg, top1.avg
