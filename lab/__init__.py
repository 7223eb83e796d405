"""The client lab: what real clients and frameworks do with tool names, measured by running them offline."""
