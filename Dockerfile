# syntax=docker/dockerfile:1
# A gateway in a container: docker build -t toolcrib . (docs/running.md says how to run it)

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist -p toolcrib && cp target/dist/toolcrib /toolcrib

FROM debian:bookworm-slim
# Python runs the tools of a workspace. Servers that are started with npx or uvx need Node.js or uv besides: build an
# image of your own upon this one.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /home/toolcrib toolcrib \
    && install --directory --owner toolcrib --group toolcrib /workspace
COPY --from=build /toolcrib /usr/local/bin/toolcrib
USER 10001
WORKDIR /workspace
VOLUME /workspace
EXPOSE 8700
# It is open to everybody who reaches the port, and says nothing but whether the gateway runs.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8700/healthz', timeout=3)"]
# The first process of a container has to look after those that nobody else does; servers may leave some.
ENTRYPOINT ["tini", "--", "toolcrib"]
CMD ["serve", "/workspace", "--listen", "0.0.0.0:8700", "--log-format", "json"]
