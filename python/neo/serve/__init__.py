"""Models over HTTP: the Open Inference Protocol, version 2, as an ASGI application (docs/serve.md)."""

from neo.serve.application import Application

__all__ = ["Application"]
