"""The adversary: what an attacker can reach on what was released. It never sees the truth."""
