"""Provide other libraries' functions over Truename's types, one module for each library."""
