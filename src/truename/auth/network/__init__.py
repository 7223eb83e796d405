"""Connect to other hosts safely: which addresses may be reached, and bounded fetching of documents."""
