DEFAULTS = {
    "SEED": 4,
    "EPOCHS": 3,
    "BATCH_SIZE": 12,
    "BASE_LR": 0.05,
    "BIAS_FACTOR": 2,
    "WEIGHT_DECAY": 1e-4,
    "WARMUP_EPOCHS": 1,
    "SMOOTHING": 0.1,
    "DEVICE": "cuda",
    "OUTPUT": "output",
}


def load_config(path, opts):
    cfg = dict(DEFAULTS)
    if path:
        with open(path) as f:
            for line in f:
                key, value = line.split(":")
                cfg[key.strip()] = type(cfg[key.strip()])(value.strip())
    for key, value in zip(opts[::2], opts[1::2]):
        cfg[key] = type(cfg[key])(value)
    return cfg
