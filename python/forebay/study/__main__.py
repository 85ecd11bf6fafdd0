"""``python -m forebay.study``."""

import sys

from forebay.study.command import main

sys.exit(main())
