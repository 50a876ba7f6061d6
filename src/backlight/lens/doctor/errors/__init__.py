"""From an exception or a warning to a finding."""
