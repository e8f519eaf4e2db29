"""The paper on private networks: what it prints, the methods, and the page.

``figures`` lists the claims and how they can be read, ``methods`` what can be run, ``claims`` what
is claimed, proved and audited, ``page`` shows what came out, ``reproduction`` is the command.
"""

from noisefloor_sim.papers.dnn.reproduction import reproduce_dnn

__all__ = ["reproduce_dnn"]
