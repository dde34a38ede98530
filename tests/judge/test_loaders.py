"""Loaders: batch samplers, batches that are looked at beside the training, files by keyword."""

from __future__ import annotations

import pytest

from dpmigrate.judge import epochs, executed, files, judged, parted, sharded, totals
from tests.judge.trained import result

_MADE = "batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), 8, False)\nother = ddp.distribute(DataLoader(data, {}))\nfor x, y in other:\n    nn.functional.cross_entropy(model(x), y).backward()\n    optimizer.step()"


@pytest.mark.parametrize(
    ("options", "one"),
    [
        pytest.param("batch_size=1, batch_sampler=batches", False, id="the batches of a sampler"),
        pytest.param("batch_size=1", True, id="one sample"),
        pytest.param("batch_size=8", False, id="several"),
    ],
)
def test_batches_of_one_sample(options: str, one: bool) -> None:
    found = [f for f in judged(result(end=_MADE.format(options))).faults if f.invariant == sharded.NAME and "one sample" in f.words]
    assert bool(found) is one


@pytest.mark.parametrize(
    "collate",
    [
        pytest.param("torch.utils.data.default_collate", id="written out"),
        pytest.param("torch.utils.data.dataloader.default_collate if settings is None else settings['collate']", id="or a setting"),
    ],
)
def test_the_function_that_puts_batches_together_anyhow(collate: str) -> None:
    """Of samples of which nothing is known, as of those of a data set of another library, batches hold as many parts as they are taken for."""
    made = "import json\nfrom elsewhere import make\nsettings = json.load(open('s.json'))\nloader = ddp.distribute(DataLoader(make(), 8, collate_fn={}))\nfor x, y in loader:\n    nn.functional.cross_entropy(model(x), y).backward()\n    optimizer.step()"
    assert not [f.words for f in judged(result(end=made.format(collate))).faults if "single samples" in f.words]


@pytest.mark.parametrize("options", ["batch_sampler=batches", "batch_size=8"])
def test_batches_whose_sizes_a_sampler_chooses(options: str) -> None:
    said = [s for s in judged(result(end=_MADE.format(options))).assumed if "has a batch sampler" in s]
    assert [s.partition(" has")[0] for s in said] == (["DataLoader(data, batch_sampler=batches)"] if "sampler" in options else [])


def test_a_batch_that_is_looked_at() -> None:
    """It begins a pass of its own, which the sampler counts."""
    look = "with torch.no_grad():\n    shown = net(next(iter(loader))[0])"
    assert not [f for f in judged(result(end=look)).faults if f.invariant == epochs.NAME]
    again = "for x, y in loader:\n    nn.functional.cross_entropy(model(x), y).backward()"
    assert [f for f in judged(result(end=again)).faults if f.invariant == epochs.NAME]


@pytest.mark.parametrize(
    ("end", "every"),
    [
        pytest.param("with open(file='log.txt', mode='a') as f:\n    f.write('x')", True, id="by keyword"),
        pytest.param("with open(file=ddp.main_path('log.txt'), mode='a') as f:\n    f.write('x')", False, id="rank 0's path"),
        pytest.param("with open('log.txt', 'a') as f:\n    f.write('x')", True, id="by place"),
    ],
)
def test_a_file_that_every_rank_writes(end: str, every: bool) -> None:
    assert bool([f for f in judged(result(end=end)).faults if f.invariant == files.ALONE]) is every


@pytest.mark.parametrize(
    ("path", "every"),
    [
        pytest.param("ddp.main_path('settings.pkl')", False, id="rank 0's path"),
        pytest.param("'settings.pkl'", True, id="one path"),
    ],
)
def test_a_module_in_a_file_that_every_rank_writes(path: str, every: bool) -> None:
    """A dictionary of settings holds the loss: what each rank writes to a file of its own harms nobody."""
    end = f"import pickle\nwith open({path}, 'wb') as f:\n    pickle.dump({{'loss': nn.Linear(2, 2), 'lr': 0.1}}, f)"
    assert bool([f for f in judged(result(end=end)).faults if f.words == "every rank writes this file"]) is every


@pytest.mark.parametrize(
    ("held", "within"),
    [
        pytest.param("model", True, id="a wrapper"),
        pytest.param("model.module", False, id="the bare model"),
    ],
)
def test_the_state_of_a_module_that_holds_a_wrapper(held: str, within: bool) -> None:
    """Its names would be ``net.module.weight``; the original's are ``net.weight``."""
    holder = f"class Holder(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = {held}\n"
    end = f"{holder}ddp.save({{'all': Holder().state_dict()}}, 'all.pt')"
    before = executed(result(end=f"{holder}torch.save(Holder().state_dict(), 'all.pt')"))
    found = [f for f in judged(result(end=end)).faults if "within the names in this state" in f.words]
    assert bool(found) is within
    # a program that saved such names goes on to
    assert not [f for f in judged(result(end=end), before).faults if "within the names in this state" in f.words]


_DATA_SET = """\
rows = iter(torch.randn(999, 2))
class Own(torch.utils.data.Dataset):
    def __init__(self):
        self.x, self.at, self.held = torch.randn(64, 2), 0, {{}}

    def __len__(self):
        return 64

    def __getitem__(self, i):
        {}


own = Own()
for x in DataLoader(own, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(own)):
    nn.functional.cross_entropy(model(x), x.argmax(1)).backward()
"""


@pytest.mark.parametrize(
    ("item", "own"),
    [
        pytest.param("self.at += 1; return self.x[self.at % 64]", True, id="the next one"),
        pytest.param("self.held[self.at] = 1; return self.x[len(self.held) % 64]", True, id="as many as are held"),
        pytest.param("if i >= 64: raise IndexError(i)\n        self.at += 1; return self.x[self.at % 64]", True, id="the next one, within bounds"),
        pytest.param("return next(rows)", True, id="of an iterator"),
        pytest.param("self.at += 1; return self.x[i]", False, id="counted"),
        pytest.param("self.held[i] = self.x[i]; return self.held[i]", False, id="kept"),
        pytest.param("return torch.randn(2)", False, id="drawn"),
        pytest.param("return self.x[0] + torch.randn(2)", False, id="one, changed by chance"),
    ],
)
def test_a_data_set_that_is_asked_for_a_sample(item: str, own: bool) -> None:
    program = result(end=_DATA_SET.format(item))
    assert bool([f for f in judged(program).faults if f.invariant == sharded.NAME and "its next sample" in f.words]) is own


def test_an_item_that_is_a_lambda() -> None:
    made = "class Own(torch.utils.data.Dataset):\n    __len__ = lambda self: 64\n    __getitem__ = lambda self, i: torch.randn(2)\nown = Own()\nfor x in DataLoader(own, batch_size=ddp.local_batch(4), sampler=ddp.DistributedSampler(own)):\n    model(x)"
    assert not [f for f in judged(result(end=made)).faults if "its next sample" in f.words]


def test_a_queue_of_a_library() -> None:
    made = "import torchio\nqueue = torchio.Queue(data, 8, 2)\nfor x in DataLoader(queue, batch_size=ddp.local_batch(4), sampler=ddp.DistributedSampler(queue)):\n    model(x)"
    assert [f for f in judged(result(end=made)).faults if "its next sample" in f.words]
    assert not [f for f in judged(result(end=made.replace("torchio.Queue(data, 8, 2)", "TensorDataset(data[:8][0])"))).faults if "its next sample" in f.words]


_PADDED = """\
class Series(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.randn(5 + i % 20, 2), i % 2


def collate(batch):
    xs, ys = zip(*batch)
    return nn.utils.rnn.pad_sequence(xs, batch_first={first}), torch.tensor(ys), torch.tensor([len(x) for x in xs])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 4, batch_first={first}, bidirectional={both})
        self.attend = nn.MultiheadAttention(2, 1, batch_first={first})
        self.out = nn.LazyLinear(2)

    def forward(self, x, n):
        {forward}


reader = ddp.wrap(Reader())
own = Series()
for x, y, n in {loader}:
    nn.functional.cross_entropy(reader(x, n), y).backward()
"""
_SHARED = "DataLoader(own, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(own), collate_fn=collate)"
_PACKED = "p = nn.utils.rnn.pack_padded_sequence(x, n, {first}, False); return self.out(self.rnn(p)[1].mean(0))"


@pytest.mark.parametrize(
    ("forward", "both", "loader", "reads"),
    [
        pytest.param("return self.out(self.rnn(x)[0][:, 0])", True, _SHARED, True, id="from both ends"),
        pytest.param("return self.out(self.rnn(x)[0][:, 0])", False, _SHARED, False, id="from the front"),
        pytest.param("return self.out(self.rnn(x)[0][:, -1])", False, _SHARED, True, id="the last place"),
        pytest.param("return self.out(x.mean(dim=1))", False, _SHARED, True, id="a mean over the places"),
        pytest.param("return self.out(x.permute(0, 2, 1).max(dim=-1).values)", False, _SHARED, True, id="the greatest of the last axis"),
        pytest.param("return self.out(x.sum(dim=1))", False, _SHARED, False, id="a sum, to which zeros add nothing"),
        pytest.param(_PACKED.format(first=True), True, _SHARED, False, id="packed"),
        pytest.param("return self.out(self.attend(x, x, x)[0][:, 0])", False, _SHARED, True, id="attention"),
        pytest.param("return self.out(self.attend(x, x, x, key_padding_mask=x[:, :, 0] == 0)[0][:, 0])", False, _SHARED, False, id="masked attention"),
        pytest.param("return self.out(self.rnn(x)[0][:, 0])", True, "ddp.shard(DataLoader(own, batch_size=16, collate_fn=collate))", False, id="whole batches"),
        pytest.param("return self.out(self.rnn(x)[0][:, 0])", True, _SHARED.replace(", collate_fn=collate", ""), False, id="not padded"),
    ],
)  # fmt: skip
def test_padding_that_is_read(forward: str, both: bool, loader: str, reads: bool) -> None:
    program = result(end=_PADDED.format(first=True, both=both, forward=forward, loader=loader))
    found = judged(program)
    assert loader != _SHARED or not found.faults
    assert bool([s for s in found.assumed if "goes by the padding" in s]) is reads


_CUT = """\
class Clips(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.randn(5 + i % 20, 2), i % 2


def collate(batch):
    {cut}
    return torch.stack([x[:n].mean(0) for x, _ in batch]), torch.tensor([y for _, y in batch])


own = Clips()
for x, y in {loader}:
    nn.functional.cross_entropy(model(x), y).backward()
"""


@pytest.mark.parametrize(
    ("cut", "loader", "told"),
    [
        pytest.param("n = min(len(x) for x, _ in batch)", _SHARED, True, id="the shortest"),
        pytest.param("n = min([x.shape[0] for x, _ in batch]) // 2", _SHARED, True, id="half of it"),
        pytest.param("n = 4", _SHARED, False, id="a fixed length"),
        pytest.param("n = min(4, 5)", _SHARED, False, id="the least of settings"),
        pytest.param("n = min(len(x) for x, _ in batch)", "ddp.shard(DataLoader(own, batch_size=16, collate_fn=collate))", False, id="whole batches"),
    ],
)
def test_samples_that_are_cut_to_the_smallest(cut: str, loader: str, told: bool) -> None:
    program = result(end=_CUT.format(cut=cut, loader=loader))
    assert bool([s for s in judged(program).assumed if "to the smallest of a batch" in s]) is told


_DECODED = """\
class Lines(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.arange(5 + i % 20) % 7, i % 2


def collate(batch):
    xs, ys = zip(*batch)
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor(ys)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(7, 4)
        self.cell = nn.GRUCell(4, 4)
        self.out = nn.Linear(4, 7)

    def forward(self, x, h):
        h = self.cell(self.letters(x), h)
        return self.out(h), h

    def all(self, x):
        h, found = x.new_zeros(len(x), 4).float(), []
        for t in range(x.size(1)):
            h = self.cell(self.letters(x[:, t]), h)
            found.append(self.out(h))
        return torch.stack(found, 1)


decoder = ddp.wrap(Decoder())
steps = torch.optim.SGD(decoder.parameters(), 0.1)
own = Lines()
for x, y in DataLoader(own, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(own), collate_fn=collate):
    h = torch.zeros(len(x), 4)
    {step}
    loss.backward()
    steps.step()
"""
_STEPS = "loss = 0\n    for t in range({count}):\n        out, h = decoder(x[:, t], h)\n        loss = loss + {term}"


@pytest.mark.parametrize(
    ("step", "invariant"),
    [
        pytest.param(_STEPS.format(count="x.size(1)", term="ddp.weighted_mean(nn.functional.cross_entropy(out, x[:, t], ignore_index=0), (x[:, t] > 0).sum())"), parted.NAME, id="a collective in each"),
        pytest.param(_STEPS.format(count="1, x.shape[1] - 1", term="nn.functional.cross_entropy(out, x[:, t])"), totals.APART, id="a mean in each"),
        pytest.param(_STEPS.format(count="4", term="nn.functional.cross_entropy(out, x[:, t])"), "", id="as many on all ranks"),
        pytest.param("loss = nn.functional.cross_entropy(decoder(x[:, 0], h)[0], y) / x.size(1)", totals.APART, id="divided by the length"),
        pytest.param("loss = nn.functional.cross_entropy(decoder(x[:, 0], h)[0], y, reduction='sum') / (x.size(0) * x.size(1))", totals.APART, id="divided by the number of places"),
        pytest.param("loss = nn.functional.cross_entropy(decoder(x[:, 0], h)[0], y, reduction='sum') / x.numel()", totals.APART, id="divided by the number of elements"),
        pytest.param("loss, t = 0, 0\n    while t < x.size(1):\n        out, h = decoder(x[:, t], h)\n        t += 1\n        loss = loss + ddp.weighted_mean(nn.functional.cross_entropy(out, y), 2.0)", parted.NAME, id="a while loop"),
        pytest.param("loss = nn.functional.cross_entropy(decoder(x[:, 0], h)[0], y) / x.size(0)", totals.NAME, id="divided by the number of samples"),
        pytest.param("out = ddp.method(decoder, 'all')(x)\n    loss = nn.functional.cross_entropy(out[:, 0], y)", "", id="a loop in the model"),
        pytest.param("T = x.size(1)\n    assert T < 99\n    loss = nn.functional.cross_entropy(decoder(x[:, 0], h)[0], y)", "", id="a length that is asked"),
    ],
)  # fmt: skip
def test_loops_as_long_as_the_padding(step: str, invariant: str) -> None:
    found = {f.invariant for f in judged(result(end=_DECODED.format(step=step))).faults} & {parted.NAME, totals.NAME, totals.APART}
    assert (invariant in found) if invariant else not found


_TRANSLATED = """\
import random


class Lines(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.arange(5 + i % 20) % 7


def collate(batch):
    return nn.utils.rnn.pad_sequence(batch)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(7, 4)
        self.reader = nn.GRU(4, 4)
        self.writer = nn.GRU(4, 4)
        self.out = nn.Linear(4, 7)

    def forward(self, x):
        found = torch.zeros(x.shape[0], x.shape[1], 7)
        {begin}
        letter = x[0]
        for t in range(1, x.shape[0]):
            each, h = self.writer(self.letters(letter).unsqueeze(0), h)
            found[t] = self.out(each.squeeze(0))
            letter = x[t] if {chosen} else found[t].argmax(1)
        return found


translator = ddp.wrap(Translator())
own = Lines()
for x in DataLoader(own, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(own), collate_fn=collate):
    found, words = translator(x)[1:].view(-1, 7), x[1:].view(-1)
    {loss}.backward()
"""
_OF_WORDS = "ddp.weighted_mean(nn.functional.cross_entropy(found, words, ignore_index=0), ddp.weight_of(words, ignore_index=0))"
_PLAIN = "h = torch.zeros(1, x.shape[1], 4)"
_READ = "_, h = self.reader(self.letters(x))"


@pytest.mark.parametrize(
    ("begin", "chosen", "reads"),
    [
        pytest.param(_PLAIN, "True", False, id="a table with places first"),
        pytest.param(_READ, "random.random() < 0.5", True, id="a draw says whether padded rows go on"),
        pytest.param(_READ, "t % 2", True, id="states that have gone through padding"),
    ],
)
def test_outputs_of_a_decoder_that_are_stored_by_place(begin: str, chosen: str, reads: bool) -> None:
    found = judged(result(end=_TRANSLATED.format(begin=begin, chosen=chosen, loss=_OF_WORDS)))
    assert not found.faults
    assert bool([s for s in found.assumed if "goes by the padding" in s]) is reads


@pytest.mark.parametrize("samples", ["batch", "[x for x in batch]"])
def test_whole_batches_that_are_padded_lie_as_their_function_says(samples: str) -> None:
    program = _TRANSLATED.format(begin=_PLAIN, chosen="True", loss=_OF_WORDS).replace("pad_sequence(batch)", f"pad_sequence({samples})")
    measured = """
total = 0
with torch.no_grad():
    whole = DataLoader(own, batch_size=16, collate_fn=collate)
    for x in ddp.shard(whole):
        found = translator.module(x)
        total += nn.functional.cross_entropy(found[1:].view(-1, 7), x[1:].view(-1), ignore_index=0).item()
total = ddp.sum_all(total)
if total / len(whole) < 1:
    raise SystemExit
"""
    found = judged(result(end=program + measured))
    assert not found.faults
    assert not [s for s in found.assumed if "needs at least" in s]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        pytest.param("len(x) > 4", True, id="a number"),
        pytest.param("x.size(0) == wanted", True, id="a setting"),
        pytest.param("4 < x.shape[0]", True, id="the other way round"),
        pytest.param("len(x) > 0", False, id="whether there are any"),
        pytest.param("len(x) == y.size(0)", False, id="another size of the batch"),
        pytest.param("len(x) == loader.batch_size", False, id="the size of the loader's batches"),
        pytest.param("x.size(1) > 4", False, id="another axis"),
        pytest.param("len(loader.dataset) > 4", False, id="the data set"),
    ],
)
def test_what_is_asked_of_the_size_of_a_batch(test: str, told: bool) -> None:
    """It is compared with a number that is chosen for the whole batch."""
    said = judged(result(epoch="import json\nwanted = json.load(open('s.json'))['size']", step=f"if {test}:\n    x = x * 2")).assumed
    assert any("asks for the size of a rank's part" in s for s in said) is told, said


def test_what_is_asked_of_the_size_of_a_batch_of_an_evaluation() -> None:
    """Its batches are whole."""
    end = "with torch.no_grad():\n    for a, b in ddp.shard(val_loader):\n        if len(a) > 4:\n            print(net(a))"
    assert not [s for s in judged(result(end=end)).assumed if "asks for the size" in s]
