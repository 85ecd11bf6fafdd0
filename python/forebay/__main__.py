"""``python -m forebay``: the command."""

import sys

from forebay._command import main

sys.exit(main())
