"""The requests that record_gym.py sends to the real servers, and how it sends and writes them down."""
