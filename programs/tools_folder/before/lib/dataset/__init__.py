from .toy import build
