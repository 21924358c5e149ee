"""Fixtures of the tests of the installed package."""

from tests.packaging.installed import installed, wheel

__all__ = ["installed", "wheel"]
