"""Two gateways as one, under test: what tests/gateway/pair.py is made of."""
