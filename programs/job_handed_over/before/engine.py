def train_epoch(job):
    for x, y in job.loader:
        loss = job.criterion(job.model(x), y)
        job.optimizer.zero_grad()
        loss.backward()
        job.optimizer.step()
