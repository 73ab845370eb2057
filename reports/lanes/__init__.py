"""The lanes of a time strip, one file each; all share one time axis."""
