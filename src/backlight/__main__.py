"""`python -m backlight` is the `backlight` command."""

import sys

from backlight.cli.main import main

sys.exit(main())
