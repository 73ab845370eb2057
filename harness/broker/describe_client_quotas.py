"""Serves DescribeClientQuotas (KIP-546): these brokers have no quotas."""

from __future__ import annotations

from harness.broker.session import Request
from harness.wire.messages.quotas import DescribeClientQuotasResponse


def describe_client_quotas(request: Request) -> None:
    """Answer that no entity has a quota."""
    request.answer(DescribeClientQuotasResponse(entries=[]))
