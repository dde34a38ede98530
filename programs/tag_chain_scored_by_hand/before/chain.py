import torch
from torch import nn


class TagChain(nn.Module):
    """The log probability of a sequence of tags, for each word of it; the words come first."""

    def __init__(self, tags):
        super().__init__()
        self.first = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.last = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.moves = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def forward(self, scores, tags, real, per_word=True):
        scores, tags, real = (t.transpose(0, 1) for t in (scores, tags, real))
        found = self.path(scores, tags, real.float()) - self.all_paths(scores, real)
        return found.sum() / real.float().sum() if per_word else found.mean()

    def path(self, scores, tags, real):
        words, size = tags.shape
        each = torch.arange(size, device=tags.device)
        total = self.first[tags[0]]
        total += scores[0, each, tags[0]]
        for n in range(1, words):
            total += self.moves[tags[n - 1], tags[n]] * real[n]
            total += scores[n, each, tags[n]] * real[n]
        ends = real.long().sum(dim=0) - 1
        return total + self.last[tags[ends, each]]

    def all_paths(self, scores, real):
        total = self.first + scores[0]
        for n in range(1, len(scores)):
            further = torch.logsumexp(total[:, :, None] + self.moves + scores[n][:, None], dim=1)
            total = torch.where(real[n][:, None], further, total)
        return torch.logsumexp(total + self.last, dim=1)
