import os

import torch
from torch import nn

from .misc import Timer


def train(model, loader, config, device):
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, config["step_size"])
    criterion = nn.CrossEntropyLoss().to(device)
    timer = Timer()
    for epoch in range(config["epochs"]):
        model.train()
        correct = total = 0
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)
        scheduler.step()
        print("epoch %d accuracy %.3f" % (epoch + 1, correct / total))
        torch.save(model.module.state_dict(), os.path.join(config["output_dir"], "epoch_%d.pth" % (epoch + 1)))
    timer.stop("training")


@torch.no_grad()
def predict(model, loader, config, device, classes):
    model.eval()
    rows = []
    for inputs, labels in loader:
        outputs = model(inputs.to(device)).softmax(1).cpu()
        rows.extend(zip(outputs.argmax(1).tolist(), labels.tolist()))
    with open(os.path.join(config["output_dir"], "predictions.csv"), "w") as f:
        f.write("predicted,true\n")
        for predicted, true in rows:
            f.write("%s,%s\n" % (classes[predicted], classes[true]))
    print("test accuracy %.3f" % (sum(p == t for p, t in rows) / len(rows)))
