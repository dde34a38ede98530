import copy
import time

import torch
import dpmigrate_runtime as ddp


def train_model(model, dataloaders, dataset_sizes, criterion, optimizer, scheduler, device, num_epochs=25):
    since = time.time()
    val_acc_history = []
    best_model_wts = copy.deepcopy(model.module.state_dict())
    best_acc = 0.0

    ddp.seed_ranks()
    for epoch in range(num_epochs):
        dataloaders['train'].sampler.set_epoch(epoch)
        print("Epoch {}/{}".format(epoch, num_epochs - 1))

        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()

            running_loss = 0.0
            running_corrects = 0
            for inputs, labels in dataloaders[phase]:
                inputs = inputs.to(device)
                labels = labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    _, preds = torch.max(outputs, 1)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            running_loss, running_corrects = ddp.sum_all(running_loss, running_corrects, over=dataloaders[phase])

            if phase == "train":
                scheduler.step()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_acc = running_corrects.double() / dataset_sizes[phase]
            print("{} Loss: {:.4f} Acc: {:.4f}".format(phase, epoch_loss, epoch_acc))
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.module.state_dict())
            if phase == "val":
                val_acc_history.append(epoch_acc.item())

    print("Training complete in {:.0f}m".format((time.time() - since) // 60))
    model.module.load_state_dict(best_model_wts)
    return model, val_acc_history
