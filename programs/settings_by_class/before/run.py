import torch

from config import cfg
from dataset import reversal_loader
from models import make_decoder, make_encoder
from solver import train_epoch, test
from utils import Recorder, fix_random, save_states

cfg.merge({"EPOCHS": 3})
fix_random(cfg.SEED)

train_loader = reversal_loader(64, cfg.BATCH_SIZE, train=True)
test_loader = reversal_loader(24, cfg.BATCH_SIZE, train=False)

encoder = torch.nn.DataParallel(make_encoder()).to(cfg.DEVICE)
decoder = torch.nn.DataParallel(make_decoder()).to(cfg.DEVICE)
optimizer = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=cfg.LR)
criterion = torch.nn.MSELoss()
recorder = Recorder("log.csv")

for epoch in range(cfg.EPOCHS):
    loss = train_epoch(encoder, decoder, train_loader, criterion, optimizer)
    error = test(encoder, decoder, test_loader)
    recorder.add(epoch, loss, error)
    save_states(cfg.OUTPUT, encoder=encoder.module.state_dict(), decoder=decoder.module.state_dict(), optimizer=optimizer.state_dict())
print("finished,", recorder.best())
