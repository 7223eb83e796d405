"""Quotas of calls for each principal, which hold across the replicas of a gateway."""

from truename.gateway.call_quotas.admission import CallQuotas

__all__ = ["CallQuotas"]
