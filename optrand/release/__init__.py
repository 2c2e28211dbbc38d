"""From a table of private labels to a released one: jobs on arrays and files, and what a user declares for them."""
