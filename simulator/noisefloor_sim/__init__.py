"""The world around the platform, and the command line."""
