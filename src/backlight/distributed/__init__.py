"""Several processes, on one machine or many, that train one model: `torch.distributed` over MPI."""

from backlight.distributed.collectives import *
from backlight.distributed.groups import *
from backlight.distributed.objects import *
from backlight.distributed.process_group import ProcessGroup, Work
from backlight.distributed.transfers import *
from backlight.errors import DistBackendError, DistError, DistNetworkError, DistStoreError
