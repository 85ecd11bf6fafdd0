"""Parts of the gateways' benchmark: see ../bench.py."""
