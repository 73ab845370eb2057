"""Kafka's wire protocol without any input or output: bytes in, objects out, and back.

::

    messages/      what is said: one dataclass per Kafka message; a field declares its type and versions
    declaration    how those classes declare themselves
    decoding       compiles the decoder of one message at one version, on first use
    encoding       compiles the encoder
    source         the Python source that both of them write
    primitives     varints, tagged fields, and the other small things that generated code calls
    frames         one request or response: header and body; which versions exist and which are advertised
    batches/       record batches v2, kept opaque: headers, checksums, patching in place; the records for probes

Whatever a peer sends, decoding returns a message or raises :class:`~harness.wire.errors.WireError`, and what it
allocates is proportional to the bytes it was given, whatever lengths they claim.
"""
