# The services in one image: its argument is the NAME of `python -m noisefloor_services NAME`.
#
# The base is named by its exact version. To fix its content as well, write the digest behind the
# tag (tag@sha256:...), once for both stages, as this prints it:
#   docker buildx imagetools inspect python:3.11.16-slim-bookworm --format '{{.Manifest.Digest}}'
ARG PYTHON_IMAGE=python:3.11.16-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY locks locks
# Wheels only, each by its hash: nothing is compiled, so no stage has a compiler. The environment
# itself has no pip.
RUN python -m venv --without-pip /opt/noisefloor \
    && pip --python /opt/noisefloor/bin/python install --no-cache-dir \
       --disable-pip-version-check --only-binary :all: --require-hashes -r locks/services.txt
# What builds our own wheel comes by its hash, too: without isolation pip fetches nothing else.
RUN pip install --no-cache-dir --disable-pip-version-check \
       --only-binary :all: --require-hashes -r locks/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY platform platform
COPY simulator simulator
COPY services services
RUN pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir /wheel . \
    && pip --python /opt/noisefloor/bin/python install --no-cache-dir \
       --disable-pip-version-check --no-index --no-deps /wheel/noisefloor-*.whl

FROM ${PYTHON_IMAGE} AS service
RUN groupadd --gid 10001 noisefloor \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin noisefloor \
    && install --directory --mode 0700 --owner 10001 --group 10001 \
       /var/lib/noisefloor /var/lib/noisefloor-key
COPY --from=build /opt/noisefloor /opt/noisefloor
# Nothing is written: the file system may be read-only. Modules come from the environment alone,
# never from the current folder.
ENV PATH=/opt/noisefloor/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    NOISEFLOOR_HOST=0.0.0.0 \
    NOISEFLOOR_PORT=8080
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; it = http.client.HTTPConnection('127.0.0.1', int(os.environ['NOISEFLOOR_PORT']), timeout=3); it.request('GET', '/healthz'); sys.exit(it.getresponse().status != 200)"]
ENTRYPOINT ["python", "-m", "noisefloor_services"]
