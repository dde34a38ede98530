"""Examples of the layers of torch.nn, which the tests execute."""

from __future__ import annotations

from dpmigrate.library.sites import examples

#: sequences of different lengths, unpacked again: filled up to the longest
_LONG = (
    "nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence("
    "x[:, :, None], t * (x[:, 0] > 0.8) * 2 + 1, True, False), True)[0]"
)

LAYER_EXAMPLES = examples(
    """
nn.Linear(4, 2)(x)
nn.Linear(4, 2).double()(x.mean(0))
nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))(x)
nn.Softmax(dim=1)(x)
nn.Softmax(dim=0)(x)
nn.Flatten()(x.view(-1, 2, 2))
nn.Embedding(4, 3)(t)
nn.LayerNorm(4)(x)
nn.Conv1d(1, 2, 2)(x[:, None])
nn.CosineSimilarity(dim=1)(x, y)
nn.PairwiseDistance()(x, y)
nn.PairwiseDistance(2, 1e-6, True)(x, y)
nn.PairwiseDistance(keepdim=True)(x, y).squeeze(1)
nn.BatchNorm1d(4).eval()(x)
nn.LSTM(4, 3, batch_first=True)(x[:, None])[0]
nn.LSTM(4, 3, batch_first=True)(x[:, None])[1][0]
nn.GRU(4, 3)(x[None])[0]
nn.GRU(4, 3)(x[:, None])[0]
nn.MultiheadAttention(4, 1, batch_first=True)(x[:, None], x[:, None], x[:, None])[0]
nn.MultiheadAttention(4, 1)(x[:, None], x[:, None], x[:, None])[0]
nn.ReLU()(x)
nn.PReLU()(x)
nn.Dropout(0.5).eval()(x)
nn.Linear(2, 3)(x.view(-1, 2, 2))
nn.Linear(12, 2)(x.repeat(1, 3)).mean(-1)
nn.LayerNorm([2, 2])(x.view(-1, 2, 2))
nn.RMSNorm(4)(x)
nn.Bilinear(4, 4, 3)(x, x)
nn.Conv2d(1, 2, 2)(x.view(-1, 1, 2, 2))
nn.Conv2d(1, 2, 2)(x.view(-1, 1, 2, 2)).flatten(1)
nn.Conv2d(1, 2, 2)(x.view(-1, 1, 2, 2)).mean((-1, -2))
nn.Conv3d(1, 2, (1, 2, 2))(x.view(-1, 1, 1, 2, 2))
nn.Conv2d(4, 2, 1)(x[:, :, None, None]).sum(dim=(1, 2, 3))
nn.Conv1d(4, 2, 1)(x.t())
nn.ConvTranspose2d(1, 2, 2)(x.view(-1, 1, 2, 2))
nn.ConvTranspose1d(1, 2, 2)(x[:, None])
nn.BatchNorm2d(1).eval()(x.view(-1, 1, 2, 2))
nn.BatchNorm3d(1).eval()(x.view(-1, 1, 1, 2, 2))
nn.BatchNorm1d(1).eval()(x[:, None])
nn.InstanceNorm2d(1)(x.view(-1, 1, 2, 2))
nn.InstanceNorm1d(1, affine=True)(x[:, None])
nn.GroupNorm(2, 4)(x)
nn.LocalResponseNorm(2)(x[:, :, None])
nn.CrossMapLRN2d(2)(x[:, :, None, None])
nn.MaxPool2d(2)(x.view(-1, 1, 2, 2))
nn.MaxPool2d(2, return_indices=True)(x.view(-1, 1, 2, 2))[1]
nn.MaxPool1d(2)(x[:, None])
nn.MaxPool1d(2)(x)
nn.MaxPool3d((1, 2, 2))(x.view(-1, 1, 1, 2, 2))
nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(x.view(-1, 1, 2, 2)))
nn.AvgPool2d(2)(x.view(-1, 1, 2, 2))
nn.AdaptiveAvgPool2d(1)(x.view(-1, 1, 2, 2))
nn.AdaptiveAvgPool2d(1)(x.view(-1, 1, 2, 2)).squeeze(-1).squeeze(-1)
nn.AdaptiveAvgPool1d(1)(x.view(-1, 2, 2)).squeeze(-1)
nn.AdaptiveMaxPool2d((1, 1))(x.view(-1, 1, 2, 2))
nn.AdaptiveMaxPool1d(1, return_indices=True)(x[:, None])[0]
nn.LPPool2d(2, 2)(x.view(-1, 1, 2, 2))
nn.Upsample(scale_factor=2)(x.view(-1, 1, 2, 2))
nn.UpsamplingNearest2d(scale_factor=2)(x.view(-1, 1, 2, 2))
nn.PixelShuffle(2)(x[:, :, None, None])
nn.PixelUnshuffle(2)(x.view(-1, 1, 2, 2))
nn.ChannelShuffle(2)(x[:, :, None, None])
nn.ZeroPad2d(1)(x.view(-1, 1, 2, 2))
nn.ReflectionPad2d(1)(x.view(-1, 1, 2, 2))
nn.ReplicationPad1d(1)(x[:, None])
nn.ConstantPad1d(1, 0.0)(x)
nn.CircularPad1d(1)(x[:, None])
nn.Unfold(2)(x.view(-1, 1, 2, 2))
nn.Fold((2, 2), 2)(x[:, :, None])
nn.Flatten()(x.t())
nn.Flatten(0)(x)
nn.Flatten(0, 1)(x.view(-1, 2, 2))
nn.Flatten(start_dim=2)(x.view(-1, 1, 2, 2))
nn.Flatten()(x[:, None]).sum(-1)
nn.Unflatten(1, (2, 2))(x)
nn.GLU()(x)
nn.GLU(dim=1)(x)
nn.Softmax2d()(x[:, :, None, None])
nn.Softmax(-1)(x)
nn.LogSoftmax(dim=1)(x)
nn.Embedding(4, 3)(t[:, None]).mean(-1)
nn.EmbeddingBag(4, 3)(t[:, None])
nn.EmbeddingBag(4, 3)(t, torch.arange(t.size(0)))
nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(x @ w, t).loss
nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(x @ w, t)[1]
nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(x @ w, t)[0]
nn.RNN(4, 3, batch_first=True)(x[:, None])[0]
nn.RNN(4, 3)(x[None])[1]
nn.LSTM(4, 3, 1, True, True)(x[:, None])[0]
nn.LSTM(4, 3, batch_first=True, bidirectional=True)(x[:, None])[0][:, -1]
nn.LSTM(4, 3, batch_first=True)(x[:, None], (x.new_zeros(1, x.size(0), 3), x[None, :, :3]))[0]
nn.GRU(4, 3, batch_first=True)(x[:, None], torch.zeros(1, x.size(0), 3))[1]
nn.GRU(4, 3, batch_first=True)(x[:, None])[1][-1]
nn.GRU(4, 3, batch_first=True)(x[:, None], x[None, :, :3])[0]
nn.GRU(4, 3)(x[:, None], torch.zeros(1, 1, 3))[1]
nn.LSTMCell(4, 3)(x)[0]
nn.LSTMCell(4, 3)(x, (torch.zeros(x.size(0), 3), torch.zeros(x.size(0), 3)))[1]
nn.GRUCell(4, 3)(x)
nn.GRUCell(4, 3)(x, x[:, :3])
nn.RNNCell(4, 3)(x, torch.zeros(x.size(0), 3))
nn.GRU(4, 3)(nn.utils.rnn.pack_padded_sequence(x[:, None], x.new_ones(x.size(0)), True))[1]
\
nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(\
x[:, None], t * 0 + 1, True), batch_first=True)[0]
nn.utils.rnn.pad_packed_sequence(nn.LSTM(4, 3)\
(nn.utils.rnn.pack_padded_sequence(x[None], t * 0 + 1))[0])[1]
nn.utils.rnn.pack_padded_sequence(x[:, None], torch.ones(x.size(0)), True).data
nn.utils.rnn.pack_padded_sequence(x[:, None], torch.ones(x.size(0)), True)[0]
nn.utils.rnn.pack_padded_sequence(x, torch.ones(x.size(0)), True)[0]
F.cross_entropy(nn.utils.rnn.pack_padded_sequence(x[:, None], torch.ones(x.size(0)), True)[0], \
nn.utils.rnn.pack_padded_sequence(t[:, None], torch.ones(x.size(0)), True).data)
LONG
LONG.sum()
LONG.sum(1)
LONG.mean()
LONG[:, 0].mean()
LONG[torch.arange(x.size(0)), t * 0].mean()
F.mse_loss(LONG, LONG * 2)
F.mse_loss(LONG, LONG * 2, reduction='sum')
nn.MultiheadAttention(4, 1, batch_first=True)(x[:, None], x[:, None], x[:, None])[1]
nn.MultiheadAttention(4, 2, batch_first=True)\
(x[:, None], y[:, None], y[:, None], (t > 1)[:, None])[0]
nn.MultiheadAttention(4, 2)(x[None], x[None], x[None], average_attn_weights=False)[1]
nn.MultiheadAttention(4, 1)(x[None], x[None], x[None], attn_mask=torch.zeros(1, 1))[0]
nn.TransformerEncoderLayer(4, 1, 8, 0.0, batch_first=True)(x[:, None])
nn.TransformerEncoderLayer(4, 1, 8, 0.0)(x[None])
nn.TransformerEncoderLayer(4, 1, 8, 0.0)(x[:, None])
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 8, 0.0, batch_first=True), 2)(x[:, None])
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 8, 0.0, batch_first=True), 1)\
(x[:, None]).mean(-1)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 8, 0.0), 2)(x[None])
nn.TransformerEncoderLayer(4, 1, 8, 0.0, batch_first=True)(x[:, None], None, (t > 1)[:, None])
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 8, 0.0, batch_first=True), 1)\
(x[:, None], mask=torch.zeros(1, 1))
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 1, 8, 0.0, batch_first=True), 1)\
(x[:, None], y[:, None])
nn.TransformerDecoderLayer(4, 1, 8, 0.0)(x[None], y[None], tgt_mask=torch.zeros(1, 1))
nn.Transformer(4, 1, 1, 1, 8, 0.0, batch_first=True)(x[:, None], y[:, None])
nn.Transformer(4, 1, 1, 1, 8, 0.0)(x[None], y[None])
nn.Transformer(4, 1, 1, 1, 8, 0.0, batch_first=True).encoder(x[:, None])
nn.Transformer(4, 1, 1, 1, 8, 0.0).encoder(x[None], src_key_padding_mask=(t > 9)[:, None])
nn.Transformer(4, 1, 1, 1, 8, 0.0).encoder(x[:, None])
nn.Transformer(4, 1, 1, 1, 8, 0.0, batch_first=True).decoder(x[:, None], y[:, None], tgt_mask=torch.zeros(1, 1))
nn.Transformer(4, 1, 1, 1, 8, 0.0).decoder(x[None], y[None])
""".replace("LONG", _LONG)
)
