"""The pytest plugin of seawall."""
