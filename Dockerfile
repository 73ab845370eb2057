# seawall with Java and PySpark: docker build --tag seawall .
# See docs/ci.md. Both stages have the same base, because the virtual environment refers to its Python.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY requirements-uv.lock ./
RUN python3 -m venv /uv \
 && /uv/bin/python -m pip install --no-cache-dir --require-hashes --no-deps --only-binary :all: \
    --requirement requirements-uv.lock
COPY pyproject.toml requirements.lock ./
RUN python3 -m venv --without-pip /opt/seawall \
 && /uv/bin/uv pip install --no-cache --compile-bytecode --python /opt/seawall/bin/python \
    --constraint requirements.lock --build-constraint requirements.lock --requirement pyproject.toml --extra spark
COPY . .
RUN /uv/bin/uv build --wheel --no-cache --build-constraint requirements.lock --python /opt/seawall/bin/python \
 && /uv/bin/uv pip install --no-cache --compile-bytecode --python /opt/seawall/bin/python --no-deps dist/*.whl

FROM ${BASE}
# A base that has Java keeps it.
RUN command -v java > /dev/null \
 || { apt-get update \
   && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
   && rm -rf /var/lib/apt/lists/*; }
# Spark needs a user with a name. Any other user may write to the volume, too: docker run --user.
RUN echo 'seawall:x:10001:10001::/work:/bin/sh' >> /etc/passwd \
 && echo 'seawall:x:10001:' >> /etc/group \
 && mkdir -p -m 1777 /tmp /work
COPY --from=build /opt/seawall /opt/seawall
ENV PATH=/opt/seawall/bin:${PATH} HOME=/work
USER 10001:10001
WORKDIR /work
VOLUME /work
ENTRYPOINT ["seawall"]
CMD ["--help"]
