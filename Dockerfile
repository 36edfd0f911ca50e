# The image of Ostro: the tar of scripts/package.sh on Debian, with a C compiler for kernels. Made by:
#
#   scripts/package.sh image
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" ostro:0.1.0 train --config train.yaml
FROM debian:bookworm-slim
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends gcc libc6-dev ca-certificates \
 && rm -rf /var/lib/apt/lists/*
ARG TREE
ADD ${TREE}.tar.gz /opt
RUN ln -s "/opt/${TREE}/bin/ostro" /usr/local/bin/ostro \
 && useradd --create-home ostro && mkdir /work && chown ostro /work
USER ostro
WORKDIR /work
# Kernels are compiled once; /tmp can be written by every user that `docker run --user` names.
ENV OSTRO_CACHE_DIR=/tmp/ostro
ENTRYPOINT ["ostro"]
