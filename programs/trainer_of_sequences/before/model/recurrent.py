import torch
import torch.nn as nn
import torch.nn.functional as F

from base import BaseModel


class Recurrent(BaseModel):
    def __init__(self, vocabulary, hidden, layers=1):
        super().__init__()
        self.layers = layers
        self.hidden = hidden
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.GRU(hidden, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, batch_size, self.hidden)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.embedding(x), hidden)
        return self.decoder(output), hidden

    def loss(self, output, target):
        return F.cross_entropy(output.reshape(-1, output.size(-1)), target.reshape(-1))
