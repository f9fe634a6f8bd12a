# The daemon in a small image, under its own user; docker-compose.yml is an example of its use.
#   docker build -t mtsd .
#   docker run -v ./config.toml:/etc/mtsd/config.toml:ro -v ./passwords:/run/secrets:ro mtsd
# [status] socket should be /run/mtsd/mtsd.sock, and password_file below /run/secrets: passwords in the
# environment would be shown by docker inspect.

# Two images of one Python: with a C compiler, so the wheel contains compiled modules, and without.
# A tag moves; docs/security.md says how to give a digest in its place.
ARG BUILD_IMAGE=python:3.11
ARG RUN_IMAGE=python:3.11-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY requirements-build.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-build.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY mtsd mtsd
# With isolation pip would fetch the backend and the compiler anew, whatever is newest.
RUN COMPILE_MTSD=1 pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM ${RUN_IMAGE}
ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock /tmp/
RUN pip install --require-hashes -r /tmp/requirements.lock
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-deps --no-index /wheels/*.whl \
    && rm /tmp/requirements.lock \
    && useradd --system --uid 4201 --user-group --home-dir /run/mtsd --shell /usr/sbin/nologin mtsd \
    && install -d -o mtsd -g mtsd -m 0700 /run/mtsd
# By number, so that others can tell that it is not root.
USER 4201:4201
WORKDIR /run/mtsd
STOPSIGNAL SIGTERM
# Healthy: it runs, and is connected to both servers. Docker reserves all but 0 and 1.
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --start-interval=2s \
    CMD ["sh", "-c", "mtsd status --config /etc/mtsd/config.toml || exit 1"]
ENTRYPOINT ["mtsd"]
CMD ["run", "--config", "/etc/mtsd/config.toml"]
