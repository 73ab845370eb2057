"""Whether the evidence of a run is complete and agrees with itself; if not, a verdict of pass would prove nothing."""
