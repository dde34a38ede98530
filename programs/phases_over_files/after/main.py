import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler

from data_utils import get_dataloaders
from model_utils import initialize_model, save_model
from train_utils import train_model
import dpmigrate_runtime as ddp

BATCH_SIZE = 12
NUM_EPOCHS = 3


def main():
    torch.manual_seed(21)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataloaders, dataset_sizes, class_names = get_dataloaders(BATCH_SIZE)
    model = initialize_model(len(class_names), feature_extract=True)
    model = ddp.wrap(model.to(device))

    params_to_update = [p for p in model.parameters() if p.requires_grad]
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(params_to_update, lr=0.05, momentum=0.9)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)

    model, history = train_model(model, dataloaders, dataset_sizes, criterion, optimizer, scheduler, device, num_epochs=NUM_EPOCHS)
    print("history:", ["%.3f" % h for h in history])
    save_model(model, "best.pth", class_names)


if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
