"""The target that is a running cluster whose nodes are harmed and healed by commands that its user gives."""
