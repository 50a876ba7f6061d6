"""Version checks and the folder of downloads."""

import os

import torch

print([int(part) for part in torch.__version__.split("+")[0].split(".")[:2]])
print(torch.__version__ >= "2.0", isinstance(torch.__version__, str), torch.version.__version__ == torch.__version__)
os.environ["TORCH_HOME"] = "/tmp/none"
print(torch.hub.get_dir())
torch.hub.set_dir("/tmp/other")
print(torch.hub.get_dir())
from torch.torch_version import TorchVersion

print(TorchVersion("2.1.0") < "2.2", torch.__version__ > (1, 9))
print(torch.__config__.show().__class__.__name__, torch.__config__.parallel_info().__class__.__name__)
