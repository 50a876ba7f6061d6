"""`SummaryWriter`, if the tensorboard package is there."""

try:
    from torch.utils.tensorboard import SummaryWriter

    print(SummaryWriter.__name__)
except ImportError as problem:
    print("needs tensorboard", "tensorboard" in str(problem).lower())
