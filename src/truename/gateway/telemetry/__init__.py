"""What the gateway tells of itself: accounts of calls, and who listens to them."""
