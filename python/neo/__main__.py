"""``python -m neo`` is the command ``neo``."""

import sys

from neo.cli import main

sys.exit(main())
