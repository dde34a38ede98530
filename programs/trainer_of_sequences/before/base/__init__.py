from .base_model import BaseModel
from .base_trainer import BaseTrainer
