"""Fixtures of the tests of the installed package."""

from tests.support.installed import installed, wheel

__all__ = ["installed", "wheel"]
