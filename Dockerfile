# Workers and services of both engines: the same image, another command.
FROM python:3.13-slim

WORKDIR /app
COPY pyproject.toml README.md requirements.lock ./
COPY two_workers two_workers
COPY investigation investigation
COPY hand_rolled hand_rolled
COPY temporal_version temporal_version
COPY comparison comparison
COPY examples examples
# The lock as constraints: the same versions as everywhere, without the tools for development.
RUN pip install --no-cache-dir -c requirements.lock ".[hand-rolled,temporal,app]" \
    && useradd --create-home --uid 10001 worker

USER worker
# Exec form: SIGTERM reaches the worker itself, which then drains.
ENTRYPOINT ["two-workers"]
CMD ["--help"]
