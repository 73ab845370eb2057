"""The museum of regressions: recorded runs on real releases of Kafka, held against what was predicted, as one page.

:mod:`harness.museum.entry` makes an entry of each recorded run, :mod:`harness.museum.exhibits` has what they show, and
:mod:`harness.museum.page` writes ``docs/museum.md``.
"""
