"""A service on a socket of its own, in a thread of the test: real HTTP, and any parts inside."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from noisefloor_services.http.logs import uvicorn_options
from noisefloor_services.http.service import Service
from noisefloor_services.http.serving import connection_options
from noisefloor_services.listening import bound
from noisefloor_services.settings import Settings


@contextmanager
def served(service: Service, settings: Settings | None = None) -> Iterator[str]:
    """Serve on a free port of the loopback address, and yield the address."""
    options = connection_options(settings or Settings()) | uvicorn_options()
    config = uvicorn.Config(service, lifespan="on", **options)
    server, listening = uvicorn.Server(config), bound("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        for _ in range(1500):
            if server.started and not service.readiness.lacks:
                break
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        assert service.readiness.lacks == ()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
