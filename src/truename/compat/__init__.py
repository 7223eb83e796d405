"""Other libraries' own words for what Truename does: thin functions over its types, one module for each library."""
