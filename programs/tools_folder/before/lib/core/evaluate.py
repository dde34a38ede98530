def accuracy(out, y):
    return (out.argmax(1) == y).sum().item(), len(y)
