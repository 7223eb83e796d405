"""What a call costs the gateway: `python -m bench.gateway_cost`, beside two other proxies in the same run."""
