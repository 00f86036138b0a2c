# distrocheck with all its extras, Java for Spark and real servers, Maven for fetching these, and the jars of one
# release already there: the build ends by holding that release against one requirement.
FROM python:3.12-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless maven \
 && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 10001 distrocheck
COPY --chown=distrocheck:distrocheck . /opt/distrocheck
RUN pip install --no-cache-dir "/opt/distrocheck[all]"

USER 10001
WORKDIR /home/distrocheck
ARG NACOS=2.2.4
RUN distrocheck test node --target "nacos:${NACOS}" --requirement DISTRO-SYNC-001

ENTRYPOINT ["distrocheck"]
CMD ["gate"]
