"""From a table of private labels to a released one."""
