import torch
import dpmigrate_runtime as ddp

ddp.setup()
from config import cfg
from dataset import reversal_loader
from models import make_decoder, make_encoder
from solver import train_epoch, test
from utils import Recorder, fix_random, save_states

cfg.merge({"EPOCHS": 3})
fix_random(cfg.SEED)

train_loader = ddp.distribute(reversal_loader(64, cfg.BATCH_SIZE, train=True))
test_loader = reversal_loader(24, cfg.BATCH_SIZE, train=False)

encoder = ddp.wrap(make_encoder().to(cfg.DEVICE))
decoder = ddp.wrap(make_decoder().to(cfg.DEVICE))
optimizer = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=cfg.LR)
criterion = torch.nn.MSELoss()
recorder = Recorder("log.csv")

ddp.seed_ranks()
for epoch in range(cfg.EPOCHS):
    train_loader.sampler.set_epoch(epoch)
    loss = train_epoch(encoder, decoder, train_loader, criterion, optimizer)
    error = test(encoder, decoder, test_loader)
    recorder.add(epoch, loss, error)
    save_states(cfg.OUTPUT, encoder=encoder.module.state_dict(), decoder=decoder.module.state_dict(), optimizer=optimizer.state_dict())
print("finished,", recorder.best())
ddp.cleanup()
