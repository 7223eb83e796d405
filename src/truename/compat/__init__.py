"""Functions with the names and meanings of other libraries' own, implemented with Truename's types.

There is one module for each library.
"""
