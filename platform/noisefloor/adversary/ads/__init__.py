"""Attacks on advertising: requests, clicks and training, fake devices, and what finds them."""
