"""Every Kafka message that we speak, by the names of Kafka's message definitions (Apache-2.0, see their ``*.json``).

Fields are the definitions' in snake case and in wire order. Errors are plain numbers here: the broker and the
controller decide which codes exist. Each module declares the messages of one subject; importing this package declares
them all.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
