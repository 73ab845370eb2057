"""Kafka's wire protocol without any I/O: decodes bytes into objects, and encodes them.

::

    messages/      one dataclass per Kafka message; a field declares its type and versions
    declaration    how those classes declare themselves
    decoding       compiles the decoder of one message at one version, on first use
    encoding       compiles the encoder
    source         the Python source that both of them write
    primitives     varints, tagged fields, and the other small things that generated code calls
    frames         one request or response: header and body; which versions exist and which are advertised
    batches/       record batches v2, kept opaque: headers, checksums, patching in place; the records for probes

For any input, decoding returns a message or raises :class:`~harness.wire.errors.WireError`, and allocates memory in
proportion to the input's bytes, whatever lengths they claim.
"""
